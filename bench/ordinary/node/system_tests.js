// node:test and assert.
const test = require("node:test"), assert = require("assert/strict");
test("sums", async (t) => {
  assert.equal(1 + 1, 2);
  await t.test("deep", () => assert.deepEqual({ a: [1] }, { a: [1] }));
  await t.test("throws", () => assert.throws(() => { throw new TypeError("no"); }, TypeError));
  await assert.rejects(Promise.reject(new Error("x")), /x/);
});
test("mocks", (t) => {
  const f = t.mock.fn((x) => x * 2);
  assert.equal(f(2), 4);
  assert.equal(f.mock.calls.length, 1);
});
process.stdout.write = () => true; // times are in it
