// fs.watch tells of a new file.
const fs = require("fs");
fs.mkdirSync("w");
const watcher = fs.watch("w", (event, name) => {
  if (name === "new.txt") { console.log("seen", name); watcher.close(); }
});
setTimeout(() => fs.writeFileSync("w/new.txt", "x"), 50);
setTimeout(() => { console.log("not seen"); process.exit(1); }, 10000).unref();
