// URLs, query strings, paths, formatting.
const path = require("path"), util = require("util");
const u = new URL("../c?x=1&y=ä#h", "https://user:pw@example.com:8080/a/b");
u.searchParams.append("x", "2");
console.log(u.href, u.host, [...u.searchParams.getAll("x")], new URLSearchParams({ a: "b c" }).toString());
console.log(path.join("/a", "../b", "c.txt"), path.resolve("/x", "y"), path.relative("/a/b", "/a/c"), path.parse("/d/f.tar.gz"));
console.log(util.inspect({ a: { b: { c: {} } } }, { depth: 1 }), util.format("%j", [1]), util.types.isDate(new Date()));
