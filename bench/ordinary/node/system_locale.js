// Intl, dates and time zones.
console.log(new Intl.NumberFormat("de-DE", { style: "currency", currency: "EUR" }).format(1234567.891));
console.log(new Intl.DateTimeFormat("en-GB", { dateStyle: "full", timeZone: "Asia/Tokyo" }).format(new Date(0)));
console.log(["ä", "z", "a"].sort(new Intl.Collator("de").compare), new Date("2024-02-29T12:00:00Z").toISOString());
process.env.TZ = "America/New_York";
console.log(new Date(0).getHours(), new Intl.PluralRules("en", { type: "ordinal" }).select(2));
console.log(new Intl.RelativeTimeFormat("en").format(-3, "day"), "İ".toLocaleLowerCase("tr"));
