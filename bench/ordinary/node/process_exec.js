// exec, execFile, execSync, spawnSync and their errors.
const cp = require("child_process"), { promisify } = require("util");
(async () => {
  console.log(cp.execSync("echo $((6 * 7))").toString().trim());
  console.log((await promisify(cp.exec)("printf a; printf b >&2")));
  try { await promisify(cp.execFile)("sh", ["-c", "exit 3"]); } catch (e) { console.log(e.code); }
  console.log(cp.spawnSync("sort", { input: "b\na\n" }).stdout.toString());
  console.log(cp.spawnSync("no-such-program").error.code);
  console.log(cp.spawnSync("sleep", ["30"], { timeout: 100 }).signal);
  console.log(cp.execSync("pwd; echo $X", { cwd: "/usr", env: { X: "y", PATH: process.env.PATH } }).toString().split("\n"));
})();
