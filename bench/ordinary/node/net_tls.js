// HTTPS with a certificate of one's own.
const https = require("https"), fs = require("fs"), { execFileSync } = require("child_process");
execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "k.pem",
  "-out", "c.pem", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], { stdio: "ignore" });
const cert = fs.readFileSync("c.pem"), key = fs.readFileSync("k.pem");
const server = https.createServer({ cert, key }, (q, r) => r.end("secure")).listen(0, "127.0.0.1", () => {
  const port = server.address().port;
  https.get({ host: "localhost", family: 4, port, ca: cert, agent: false }, (r) => r.on("data", (d) => {
    console.log(String(d), r.socket.authorized);
    https.get({ host: "localhost", family: 4, port, agent: false }).on("error", (e) => { console.log(e.code); server.close(); });
  }));
});
