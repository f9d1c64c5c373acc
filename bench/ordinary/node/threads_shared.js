// Shared memory between threads, with Atomics.
const { Worker, isMainThread, workerData } = require("worker_threads");
if (isMainThread) {
  const shared = new SharedArrayBuffer(8), view = new Int32Array(shared);
  const workers = [1, 2, 3].map(() => new Promise((ok) => new Worker(__filename, { workerData: shared }).on("exit", ok)));
  Promise.all(workers).then((codes) => console.log(view[0], codes, Atomics.wait(view, 1, 0, 20)));
} else {
  const view = new Int32Array(workerData);
  for (let i = 0; i < 1000; i++) Atomics.add(view, 0, 1);
}
