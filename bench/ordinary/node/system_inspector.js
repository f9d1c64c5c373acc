// The debugger's protocol, from within; a profile; the heap's figures.
const inspector = require("inspector"), v8 = require("v8");
const session = new inspector.Session();
session.connect();
session.post("Profiler.enable", () => session.post("Profiler.start", () => {
  for (let i = 0, s = 0; i < 1e6; i++) s += i;
  session.post("Profiler.stop", (e, { profile }) => console.log(e, profile.nodes.length > 0));
}));
session.post("Runtime.evaluate", { expression: "1 + 1" }, (e, r) => console.log(r.result.value));
console.log(v8.getHeapStatistics().heap_size_limit > 1e6, v8.deserialize(v8.serialize({ a: 1 })));
