// Signals to oneself and to a child.
const { spawn } = require("child_process");
process.on("SIGUSR2", () => {
  console.log("SIGUSR2");
  const child = spawn(process.execPath, ["-e", "process.on('SIGTERM', () => { console.log('term'); process.exit(6) }); console.log('up'); setInterval(() => {}, 1000)"]);
  child.stdout.on("data", (d) => { process.stdout.write(d); if (String(d).includes("up")) child.kill("SIGTERM"); });
  child.on("close", (code) => { console.log(code); clearInterval(alive); });
});
const alive = setInterval(() => {}, 1000);
process.kill(process.pid, "SIGUSR2");
