// A request that is given up, and one that times out.
const http = require("http");
const server = http.createServer(() => {}).listen(0, "127.0.0.1", async () => {
  const url = `http://127.0.0.1:${server.address().port}/`;
  const control = new AbortController();
  setTimeout(() => control.abort(), 30);
  for (const signal of [control.signal, AbortSignal.timeout(30)])
    await fetch(url, { signal }).catch((e) => console.log(e.name));
  server.closeAllConnections(); server.close();
});
