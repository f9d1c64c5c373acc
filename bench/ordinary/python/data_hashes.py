# Hashes, codes and tokens.
import base64
import binascii
import hashlib
import hmac
import secrets
import uuid
import zlib

data = b"The quick brown fox"
for name in ("md5", "sha1", "sha256", "blake2b", "sha3_256"):
    print(name, hashlib.new(name, data).hexdigest()[:16])
print(hmac.new(b"key", data, "sha256").hexdigest()[:16], base64.b64encode(data).decode(), binascii.crc32(data))
print(hashlib.pbkdf2_hmac("sha256", b"p", b"s", 1000).hex()[:16], hashlib.scrypt(b"p", salt=b"s", n=16, r=8, p=1).hex()[:16])
print(uuid.uuid5(uuid.NAMESPACE_DNS, "example.com"), zlib.adler32(data))
assert len(secrets.token_hex(16)) == 32 and uuid.uuid4() != uuid.uuid4() and uuid.uuid1()
