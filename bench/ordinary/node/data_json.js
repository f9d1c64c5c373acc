// JSON: revivers, errors, circles; sorting and grouping records.
const people = [{ n: "Ann", a: 30 }, { n: "Bob", a: 25 }, { n: "Cyn", a: 30 }];
const by = people.reduce((m, p) => ((m[p.a] ??= []).push(p.n), m), {});
console.log(by, JSON.stringify({ d: new Date(0), u: undefined, f() {} }), JSON.parse('{"d":"1970"}', (k, v) => (k === "d" ? Number(v) : v)));
const circle = {}; circle.self = circle;
for (const f of [() => JSON.stringify(circle), () => JSON.parse("{bad}")]) try { f(); } catch (e) { console.log(e.name); }
console.log(people.map((p) => p.a).sort((x, y) => x - y), Math.max(...people.map((p) => p.a)), structuredClone(people)[0]);
