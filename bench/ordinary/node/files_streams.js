// Streams: a pipeline with a transformation and compression.
const fs = require("fs"), zlib = require("zlib"), { Transform } = require("stream"), { pipeline } = require("stream/promises");
(async () => {
  fs.writeFileSync("in.txt", "some words in lines\n".repeat(5000));
  const upper = new Transform({ transform(chunk, _, done) { done(null, chunk.toString().toUpperCase()); } });
  await pipeline(fs.createReadStream("in.txt"), upper, zlib.createGzip(), fs.createWriteStream("out.gz"));
  await pipeline(fs.createReadStream("out.gz"), zlib.createGunzip(), fs.createWriteStream("out.txt"));
  console.log(fs.statSync("out.gz").size < 2000, fs.readFileSync("out.txt", "utf8") === fs.readFileSync("in.txt", "utf8").toUpperCase());
})();
