// A parser of CSV as a transform, into a summary.
const { Transform, Readable } = require("stream"), { pipeline } = require("stream/promises");
class Lines extends Transform {
  constructor() { super({ readableObjectMode: true }); this.rest = ""; }
  _transform(chunk, _, done) { const parts = (this.rest + chunk).split("\n"); this.rest = parts.pop(); parts.forEach((p) => this.push(p.split(","))); done(); }
  _flush(done) { if (this.rest) this.push(this.rest.split(",")); done(); }
}
const totals = new Map();
pipeline(Readable.from(["a,1\nb,", "2\na,3", "\nc,4"]), new Lines(), async function (rows) {
  for await (const [k, v] of rows) totals.set(k, (totals.get(k) ?? 0) + Number(v));
}).then(() => console.log(totals));
