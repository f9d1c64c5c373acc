// Children with the parent's streams, files as streams, detached children, big output.
const cp = require("child_process"), fs = require("fs");
cp.spawnSync("echo", ["inherited"], { stdio: "inherit" });
const out = fs.openSync("out.txt", "w");
cp.spawnSync("sh", ["-c", "echo out; echo err >&2"], { stdio: ["ignore", out, out] });
console.log(fs.readFileSync("out.txt", "utf8").split("\n"));
console.log(cp.execSync("head -c 3000000 /dev/zero | tr '\\0' x", { maxBuffer: 1 << 24 }).length);
const child = cp.spawn("sh", ["-c", "sleep 0.1; echo late >late.txt"], { detached: true, stdio: "ignore" });
child.on("exit", () => console.log(fs.readFileSync("late.txt", "utf8").trim()));
const piped = cp.spawn("cat", { stdio: ["pipe", "pipe", "inherit", "pipe"] });
piped.stdout.on("data", (d) => console.log(String(d)));
piped.stdin.end("through cat");
