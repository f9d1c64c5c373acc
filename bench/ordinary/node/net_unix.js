// A Unix socket by its path.
const net = require("net"), fs = require("fs");
const server = net.createServer((s) => { s.write("hello"); s.end(); }).listen("s.sock", () => {
  console.log(fs.statSync("s.sock").isSocket());
  net.connect("s.sock").on("data", (d) => console.log(String(d))).on("close", () => server.close(() => console.log(fs.existsSync("s.sock"))));
});
