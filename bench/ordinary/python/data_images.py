# A PNG picture by hand: zlib and checksums, then read again.
import struct
import zlib


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


width, height = 32, 16
rows = b"".join(b"\0" + b"".join(bytes((x * 8, y * 16, 99)) for x in range(width)) for y in range(height))
with open("p.png", "wb") as f:
    f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)))
    f.write(chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
data = open("p.png", "rb").read()
print(struct.unpack(">II", data[16:24]), zlib.decompress(data[41:41 + struct.unpack(">I", data[33:37])[0]]) == rows)
