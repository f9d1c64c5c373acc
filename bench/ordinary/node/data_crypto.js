// Hashes, signatures, ciphers, random numbers.
const crypto = require("crypto");
console.log(crypto.createHash("sha256").update("hello").digest("hex").slice(0, 16), crypto.createHmac("sha1", "k").update("d").digest("base64"));
const key = crypto.scryptSync("password", "salt", 32), iv = Buffer.alloc(12, 1);
const cipher = crypto.createCipheriv("aes-256-gcm", key, iv);
const sealed = Buffer.concat([cipher.update("secret"), cipher.final()]), tag = cipher.getAuthTag();
const open = crypto.createDecipheriv("aes-256-gcm", key, iv).setAuthTag(tag);
console.log(sealed.toString("hex"), open.update(sealed, null, "utf8") + open.final("utf8"));
const { publicKey, privateKey } = crypto.generateKeyPairSync("ed25519");
console.log(crypto.verify(null, Buffer.from("m"), publicKey, crypto.sign(null, Buffer.from("m"), privateKey)));
console.log(crypto.randomUUID().length, crypto.randomBytes(8).length, crypto.randomInt(5) < 5);
