// Buffers, typed arrays, encodings.
const b = Buffer.alloc(12);
b.writeUInt32BE(0xdeadbeef, 0); b.writeDoubleLE(1.5, 4);
console.log(b.toString("hex"), b.readDoubleLE(4), Buffer.from("héllo").toString("base64url"));
console.log(new TextDecoder("utf-16le").decode(Buffer.from("hi", "utf16le")), new TextEncoder().encode("€"));
console.log(Buffer.concat([Buffer.from([1, 2]), Buffer.from([3])]), Buffer.compare(Buffer.from("a"), Buffer.from("b")));
console.log(new Float32Array([1.1])[0].toFixed(5), new DataView(new ArrayBuffer(8)).getBigInt64(0), atob(btoa("x")));
