// The order of ticks, promises, immediates and timers.
setTimeout(() => console.log("timeout"), 0);
setTimeout(() => setImmediate(() => console.log("immediate")), 5);
Promise.resolve().then(() => console.log("promise"));
process.nextTick(() => console.log("tick"));
console.log("first");
let n = 0;
const start = process.hrtime.bigint(), every = setInterval(() => { if (++n === 3) { clearInterval(every); console.log("interval", process.hrtime.bigint() - start > 15000000n); } }, 10);
