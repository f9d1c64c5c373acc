// What os and process say of the machine.
const os = require("os"), assert = require("assert");
assert(os.cpus().length >= 1 && os.totalmem() >= os.freemem() && os.freemem() > 0);
assert(os.hostname() && os.release() && os.userInfo().username && os.homedir() && os.tmpdir());
assert(os.loadavg().length === 3 && os.uptime() > 0 && process.uptime() > 0);
assert(process.memoryUsage().rss > 1e6 && process.resourceUsage().maxRSS > 0 && process.pid > 0);
assert(os.availableParallelism() >= 1);
console.log(os.platform(), os.EOL === "\n", os.endianness(), process.release.name, process.title.includes("node"));
