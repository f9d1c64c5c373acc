// Exit codes, exit handlers, uncaught errors, standard input that has ended.
const { spawnSync } = require("child_process");
const run = (code) => { const r = spawnSync(process.execPath, ["-e", code], { input: "typed" }); return [r.status, r.stdout.toString().trim()]; };
console.log(run("process.on('exit', (c) => console.log('bye', c)); process.exit(4)"));
console.log(run("process.exitCode = 5"));
console.log(run("throw new Error('x')")[0], run("Promise.reject(new Error('x'))")[0]);
console.log(run("process.on('uncaughtException', (e) => console.log(e.message)); throw new Error('caught')"));
console.log(run("let s = ''; process.stdin.on('data', d => s += d).on('end', () => console.log(s.length))"));
