# A binary format with struct: write a BMP picture and read its header.
import struct

width, height = 16, 8
row = b"".join(bytes((x * 15, 128, 255 - x * 15)) for x in range(width))
size = 54 + height * len(row)
with open("p.bmp", "wb") as f:
    f.write(struct.pack("<2sIHHI", b"BM", size, 0, 0, 54))
    f.write(struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, 0, 2835, 2835, 0, 0))
    f.write(row * height)
with open("p.bmp", "rb") as f:
    magic, length = struct.unpack("<2sI", f.read(6))
    f.seek(18)
    print(magic, length, struct.unpack("<ii", f.read(8)))
