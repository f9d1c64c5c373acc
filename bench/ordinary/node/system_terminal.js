// Where there is no terminal.
console.log(process.stdin.isTTY, process.stdout.isTTY, process.stdout.columns);
const readline = require("readline/promises");
const rl = readline.createInterface({ input: process.stdin });
rl.on("close", () => console.log("no input"));
console.table([{ a: 1, b: "x" }, { a: 2, b: "y" }]);
console.error("to standard error");
console.log("%s is %d years and %o", "Ann", 42, { deep: { er: [1] } });
