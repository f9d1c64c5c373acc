// Streams with pressure from the reader, and web streams.
const { Writable, PassThrough, finished } = require("stream");
let written = 0, waits = 0;
const slow = new Writable({ highWaterMark: 16, write(chunk, _, done) { written += chunk.length; setImmediate(done); } });
(async () => {
  for (let i = 0; i < 20; i++) if (!slow.write("12345678")) { waits++; await new Promise((r) => slow.once("drain", r)); }
  slow.end();
  finished(slow, () => console.log(written, waits > 0));
  const web = new ReadableStream({ start(c) { c.enqueue("a"); c.enqueue("b"); c.close(); } });
  for await (const x of web) console.log(x);
  console.log(await new Response(new Blob(["blob"]).stream()).text(), new PassThrough().writableLength);
})();
