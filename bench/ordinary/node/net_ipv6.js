// IPv6 loopback, and both families at once.
const http = require("http"), os = require("os");
const server = http.createServer((q, r) => r.end(q.socket.remoteFamily)).listen(0, "::", () => {
  const port = server.address().port;
  const get = (host) => new Promise((ok, no) => http.get({ host, port, agent: false }, (r) => r.on("data", (d) => ok(String(d)))).on("error", no));
  get("::1").then(async (six) => { console.log(six, await get("127.0.0.1")); server.close(); });
});
console.log(Object.keys(os.networkInterfaces()).includes("lo"));
