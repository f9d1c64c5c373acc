// CommonJS, ES modules, JSON, a package of one's own.
const fs = require("fs"), path = require("path");
fs.mkdirSync("node_modules/mine", { recursive: true });
fs.writeFileSync("node_modules/mine/package.json", '{"name": "mine", "version": "1.2.3", "exports": {"import": "./m.mjs", "require": "./c.js"}}');
fs.writeFileSync("node_modules/mine/m.mjs", "export default 'es'; export const n = 1; export const url = import.meta.url.startsWith('file:');");
fs.writeFileSync("node_modules/mine/c.js", "module.exports = 'common';");
fs.writeFileSync("use.js", "const m = require('mine'); import('mine').then((e) => console.log(m, e.default, e.n, e.url));");
fs.writeFileSync("data.json", '{"k": [1, 2]}');
console.log(require(path.resolve("data.json")).k);
require(path.resolve("use.js"));
