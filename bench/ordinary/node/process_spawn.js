// A pipeline of spawned programs, and their ends.
const { spawn } = require("child_process");
const seq = spawn("seq", ["1", "50"]), grep = spawn("grep", ["5"]);
seq.stdout.pipe(grep.stdin);
let out = "";
grep.stdout.on("data", (d) => (out += d));
grep.on("close", (code) => {
  console.log(code, out.split("\n").length - 1);
  const sleeper = spawn("sleep", ["30"]);
  sleeper.on("exit", (code, signal) => console.log(code, signal));
  sleeper.kill("SIGTERM");
});
