// A chat over TCP: everybody gets what anybody says.
const net = require("net");
const all = new Set();
const server = net.createServer((s) => { all.add(s); s.on("data", (d) => { for (const o of all) if (o !== s) o.write(d); }); s.on("close", () => all.delete(s)); });
server.listen(0, "127.0.0.1", async () => {
  const join = () => new Promise((ok) => { const s = net.connect(server.address().port, "127.0.0.1", () => ok(s)); });
  const [a, b, c] = [await join(), await join(), await join()];
  while (all.size < 3) await new Promise((r) => setTimeout(r, 5));
  const heard = [b, c].map((s) => new Promise((ok) => s.once("data", (d) => ok(String(d)))));
  a.write("hello all");
  console.log(await Promise.all(heard));
  for (const s of [a, b, c]) s.destroy();
  server.close(() => console.log("closed"));
});
