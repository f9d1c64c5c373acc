// Files with promises, many at a time.
const fs = require("fs/promises"), os = require("os"), path = require("path");
(async () => {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), "t-"));
  await Promise.all([...Array(20).keys()].map((i) => fs.writeFile(path.join(folder, `${i}.txt`), "x".repeat(i))));
  const names = await fs.readdir(folder);
  const sizes = await Promise.all(names.map(async (n) => (await fs.stat(path.join(folder, n))).size));
  console.log(names.length, sizes.reduce((a, b) => a + b));
  try { await fs.readFile("missing"); } catch (e) { console.log(e.code, e.syscall); }
  const handle = await fs.open(path.join(folder, "h"), "w+");
  await handle.write("0123456789"); await handle.truncate(4);
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(10), 0, 10, 0);
  console.log(buffer.subarray(0, bytesRead).toString());
  await handle.close();
  for await (const entry of await fs.opendir(folder)) await fs.unlink(path.join(folder, entry.name));
  await fs.rmdir(folder);
})();
