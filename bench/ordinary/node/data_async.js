// Generators, async iteration, events.
const { EventEmitter, once, on } = require("events"), { Readable } = require("stream");
async function* numbers(n) { for (let i = 0; i < n; i++) { await null; yield i; } }
(async () => {
  const found = [];
  for await (const n of numbers(5)) found.push(n);
  console.log(found, await Readable.from(numbers(10)).filter((x) => x % 2).map((x) => x * x).toArray());
  const e = new EventEmitter();
  setTimeout(() => e.emit("go", 1, 2), 5);
  console.log(await once(e, "go"));
  console.log(await Promise.allSettled([Promise.resolve(1), Promise.reject(new Error("no"))]).then((r) => r.map((x) => x.status)));
  console.log(await Promise.any([new Promise((r) => setTimeout(r, 50, "slow")), Promise.resolve("fast")]));
})();
