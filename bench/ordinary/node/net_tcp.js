// A TCP server, two clients, an address that is not listened on.
const net = require("net");
const server = net.createServer((s) => s.on("data", (d) => s.end(String(d).toUpperCase())));
server.listen(0, "127.0.0.1", () => {
  const port = server.address().port;
  const ask = (w) => new Promise((ok) => { let got = ""; net.connect(port, "127.0.0.1").on("data", (d) => (got += d)).on("end", () => ok(got)).write(w); });
  Promise.all(["one", "two"].map(ask)).then((r) => {
    console.log(r);
    server.close(() => net.connect(port, "127.0.0.1").on("error", (e) => console.log(e.code)));
  });
});
