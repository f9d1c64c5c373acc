// Walk a tree, sum the sizes, hash the contents, make a manifest.
const fs = require("fs"), path = require("path"), crypto = require("crypto");
for (let i = 0; i < 12; i++) { fs.mkdirSync(`t/${i % 3}/x`, { recursive: true }); fs.writeFileSync(`t/${i % 3}/x/${i}.dat`, "d".repeat(i * 10)); }
const manifest = {};
(function walk(dir) {
  for (const e of fs.readdirSync(dir, { withFileTypes: true })) {
    const p = path.join(dir, e.name);
    if (e.isDirectory()) walk(p); else manifest[p] = crypto.createHash("md5").update(fs.readFileSync(p)).digest("hex").slice(0, 8);
  }
})("t");
console.log(manifest);
fs.cpSync("t", "copy", { recursive: true });
console.log(fs.readdirSync("copy", { recursive: true }).length);
