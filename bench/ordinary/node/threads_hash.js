// Three threads that search for a hash with zeros in front, the first one wins.
const { Worker, isMainThread, workerData, parentPort } = require("worker_threads"), crypto = require("crypto");
if (isMainThread) {
  const workers = [0, 1, 2].map((i) => new Worker(__filename, { workerData: i }));
  Promise.all(workers.map((w) => new Promise((ok) => w.on("message", ok)))).then((found) => {
    console.log(Math.min(...found));
    Promise.all(workers.map((w) => w.terminate())).then((codes) => console.log(codes.length));
  });
} else {
  for (let n = workerData; ; n += 3) if (crypto.createHash("sha256").update("x" + n).digest("hex").startsWith("000")) { parentPort.postMessage(n); break; }
}
