// Gzip, deflate, brotli.
const zlib = require("zlib"), { promisify } = require("util");
(async () => {
  const data = Buffer.from("again and again ".repeat(1000));
  for (const [a, b] of [["gzip", "gunzip"], ["deflate", "inflate"], ["brotliCompress", "brotliDecompress"]]) {
    const small = await promisify(zlib[a])(data);
    console.log(a, small.length < 200, (await promisify(zlib[b])(small)).equals(data));
  }
})();
