// A command-line tool that is written, made executable, and run with arguments and input.
const fs = require("fs"), { execFileSync, spawnSync } = require("child_process"), { parseArgs } = require("util");
fs.writeFileSync("tool", `#!/usr/bin/env node
const { parseArgs } = require("util");
const { values, positionals } = parseArgs({ options: { upper: { type: "boolean", short: "u" } }, allowPositionals: true });
process.stdin.setEncoding("utf8").on("data", (d) => console.log(values.upper ? d.toUpperCase() : d, positionals));
`, { mode: 0o755 });
console.log(execFileSync("./tool", ["-u", "a"], { input: "text", encoding: "utf8" }).trim());
console.log(spawnSync("./tool", ["--wrong"], { encoding: "utf8" }).status, parseArgs({ args: [] }).positionals);
