// A git repository made and read by a program.
const { execFileSync } = require("child_process"), fs = require("fs");
const git = (...a) => execFileSync("git", ["-c", "user.name=A", "-c", "user.email=a@example.com", ...a], { cwd: "r", encoding: "utf8" }).trim();
fs.mkdirSync("r");
git("init", "-q", "-b", "main");
for (const n of [1, 2, 3]) {
  fs.writeFileSync(`r/${n}.txt`, `${n}\n`);
  git("add", "."); git("commit", "-qm", `commit ${n}`);
}
console.log(git("log", "--oneline", "--format=%s").split("\n"), git("diff", "--name-only", "HEAD~2").split("\n"));
git("tag", "v1"); git("revert", "--no-edit", "HEAD");
console.log(git("ls-files").split("\n"), git("describe", "--tags", "HEAD~1"));
