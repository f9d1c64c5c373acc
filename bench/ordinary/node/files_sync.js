// Files with fs, synchronously.
const fs = require("fs"), path = require("path"), assert = require("assert");
fs.mkdirSync("a/b/c", { recursive: true });
fs.writeFileSync("a/b/x.txt", "hello\n");
fs.appendFileSync("a/b/x.txt", "world\n");
assert.equal(fs.readFileSync("a/b/x.txt", "utf8"), "hello\nworld\n");
fs.copyFileSync("a/b/x.txt", "a/y.txt");
fs.renameSync("a/y.txt", "a/z.txt");
fs.chmodSync("a/z.txt", 0o600);
console.log(fs.readdirSync("a").sort(), (fs.statSync("a/z.txt").mode & 0o777).toString(8), path.extname("a/z.txt"));
fs.symlinkSync("z.txt", "a/link");
fs.linkSync("a/z.txt", "a/hard");
console.log(fs.readlinkSync("a/link"), fs.statSync("a/hard").nlink, fs.existsSync("a/none"));
fs.rmSync("a", { recursive: true });
console.log(fs.existsSync("a"));
