// Message channels, transferred buffers, structured clones.
const { MessageChannel, Worker } = require("worker_threads");
const { port1, port2 } = new MessageChannel();
const worker = new Worker("require('worker_threads').parentPort.once('message', ({ port, data }) => { port.postMessage(data.reduce((a, b) => a + b)); port.close() })", { eval: true });
const data = new Uint8Array([1, 2, 3]);
worker.postMessage({ port: port2, data }, [port2, data.buffer]);
port1.on("message", (m) => console.log(m, data.length)).on("close", () => console.log("closed"));
console.log(structuredClone(new Map([["a", new Date(0)]])));
