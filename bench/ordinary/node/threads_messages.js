// worker_threads with messages.
const { Worker, isMainThread, parentPort, workerData } = require("worker_threads");
if (isMainThread) {
  const run = (n) => new Promise((ok, no) => new Worker(__filename, { workerData: n }).on("message", ok).on("error", no));
  Promise.all([10, 20, 25].map(run)).then((r) => console.log(r));
} else {
  const fib = (n) => (n < 2 ? n : fib(n - 1) + fib(n - 2));
  parentPort.postMessage(fib(workerData));
}
