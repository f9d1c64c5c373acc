// A heap that is too small, a stack that is too deep.
const { spawnSync } = require("child_process");
const r = spawnSync(process.execPath, ["--max-old-space-size=32", "-e", "const a = []; for (;;) a.push(new Array(1e5).fill(1))"], { encoding: "utf8" });
console.log(r.signal || r.status, r.stderr.includes("heap out of memory"));
try { (function f() { f(); })(); } catch (e) { console.log(e.name); }
const bytes = Buffer.alloc(80 << 20, 1);
console.log(bytes.length, bytes[bytes.length - 1]);
