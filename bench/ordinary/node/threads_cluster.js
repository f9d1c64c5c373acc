// cluster: two workers behind one port.
const cluster = require("cluster"), http = require("http");
if (cluster.isPrimary) {
  let up = 0;
  cluster.on("listening", (w, address) => {
    if (++up < 2) return;
    Promise.all([1, 2, 3, 4].map(() => new Promise((ok) => http.get({ port: address.port, agent: false }, (r) => r.on("data", (d) => ok(String(d)))))))
      .then((all) => { console.log(all); for (const w of Object.values(cluster.workers)) w.kill(); });
  });
  cluster.fork(); cluster.fork();
} else http.createServer((q, r) => r.end("ok")).listen(0, "127.0.0.1");
