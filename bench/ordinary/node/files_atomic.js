// A file that is replaced as a whole, a lock that only one can make, times.
const fs = require("fs");
fs.writeFileSync("f.tmp", "new"); fs.fsyncSync(fs.openSync("f.tmp", "r")); fs.renameSync("f.tmp", "f");
fs.writeFileSync("lock", "", { flag: "wx" });
try { fs.writeFileSync("lock", "", { flag: "wx" }); } catch (e) { console.log(e.code); }
fs.utimesSync("f", 1e9, 1e9);
console.log(fs.statSync("f").mtime.toISOString(), fs.readFileSync("f", "utf8"));
try { fs.accessSync("none", fs.constants.R_OK); } catch (e) { console.log(e.code); }
try { fs.rmdirSync("."); } catch (e) { console.log(e.code); }
console.log(fs.statfsSync(".").bavail > 0);
