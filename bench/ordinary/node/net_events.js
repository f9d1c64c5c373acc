// Server-sent events, read as a stream.
const http = require("http");
const server = http.createServer((q, r) => {
  r.writeHead(200, { "Content-Type": "text/event-stream" });
  let n = 0;
  const timer = setInterval(() => { r.write(`data: ${++n}\n\n`); if (n === 3) { clearInterval(timer); r.end(); } }, 10);
}).listen(0, "127.0.0.1", async () => {
  const answer = await fetch(`http://127.0.0.1:${server.address().port}/`);
  let text = "";
  for await (const chunk of answer.body) text += Buffer.from(chunk).toString();
  console.log(text.trim().split(/\n\n/));
  server.close(); server.closeAllConnections();
});
