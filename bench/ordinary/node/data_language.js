// Classes, private fields, symbols, proxies, big integers, destructuring.
class Stack { #items = []; static of(...x) { const s = new Stack(); x.forEach((i) => s.push(i)); return s; } push(i) { this.#items.push(i); return this; } get size() { return this.#items.length; } *[Symbol.iterator]() { yield* this.#items; } }
const { size, ...rest } = { size: 3, a: 1, b: 2 };
console.log([...Stack.of(1, 2, 3)], Stack.of(1).size, size, rest);
const logged = [], proxy = new Proxy({}, { get: (t, k) => { logged.push(k); return 42; } });
console.log(proxy.x + proxy.y, logged, 2n ** 100n, [3, 1, 2].toSorted?.() ?? [3, 1, 2].sort());
console.log(Object.groupBy ? "new" : "old", [1, [2, [3]]].flat(Infinity), "a-b-c".replaceAll("-", "+"), null ?? "default", rest?.c?.d);
console.log(new Map([[1, "a"]]), new Set([1, 1, 2]), /(?<y>\d{4})/.exec("in 2024").groups.y);
