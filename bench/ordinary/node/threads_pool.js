// libuv's own pool: many slow things at a time.
const crypto = require("crypto"), dns = require("dns"), { promisify } = require("util");
(async () => {
  const keys = await Promise.all([...Array(8).keys()].map((i) => promisify(crypto.pbkdf2)("p" + i, "s", 1000, 16, "sha256")));
  console.log(keys.map((k) => k.toString("hex").slice(0, 4)).join(" "));
  console.log((await dns.promises.lookup("localhost", { family: 4 })).address);
})();
