// fork() with messages between two processes of node.
const { fork } = require("child_process");
if (process.argv[2] === "child") {
  process.on("message", (m) => { process.send({ sum: m.numbers.reduce((a, b) => a + b) }); });
} else {
  const child = fork(__filename, ["child"]);
  child.on("message", (m) => { console.log(m); child.disconnect(); });
  child.on("exit", (code) => console.log("exit", code));
  child.send({ numbers: [1, 2, 3] });
}
