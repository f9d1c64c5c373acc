// Read a file line by line; write CSV and JSON.
const fs = require("fs"), readline = require("readline");
(async () => {
  fs.writeFileSync("d.csv", "name,n\nann,3\nbob,4\nann,5\n");
  const sums = {};
  let head = true;
  for await (const line of readline.createInterface({ input: fs.createReadStream("d.csv") })) {
    if (head) { head = false; continue; }
    const [name, n] = line.split(",");
    sums[name] = (sums[name] || 0) + Number(n);
  }
  fs.writeFileSync("d.json", JSON.stringify(sums, null, 2));
  console.log(JSON.parse(fs.readFileSync("d.json")));
})();
