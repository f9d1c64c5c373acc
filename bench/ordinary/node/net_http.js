// An HTTP server with routes and JSON, its client, and fetch.
const http = require("http");
const server = http.createServer((request, response) => {
  if (request.url === "/missing") { response.writeHead(404); response.end(); return; }
  let body = "";
  request.on("data", (d) => (body += d)).on("end", () => {
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify({ method: request.method, url: request.url, body }));
  });
});
server.listen(0, "localhost", async () => {
  const base = `http://localhost:${server.address().port}`;
  console.log(await (await fetch(base + "/a?b=1", { method: "POST", body: "posted" })).json());
  console.log((await fetch(base + "/missing")).status);
  http.get(base + "/get", (r) => { r.setEncoding("utf8"); r.on("data", (d) => console.log(r.statusCode, d)).on("end", () => { server.close(); server.closeAllConnections(); }); });
});
