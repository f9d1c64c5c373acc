// AsyncLocalStorage, performance, vm, weak references.
const { AsyncLocalStorage } = require("async_hooks"), vm = require("vm"), { performance } = require("perf_hooks");
const store = new AsyncLocalStorage();
const log = [];
const handle = (id) => store.run(id, async () => { await new Promise((r) => setTimeout(r, 5)); log.push(store.getStore()); });
Promise.all([handle(1), handle(2)]).then(() => {
  console.log(log.sort());
  console.log(vm.runInNewContext("x * 2", { x: 21 }), performance.now() > 0);
  try { vm.runInNewContext("while (true);", {}, { timeout: 50 }); } catch (e) { console.log(e.code); }
  console.log(new WeakRef(log).deref() === log, typeof globalThis.gc);
});
