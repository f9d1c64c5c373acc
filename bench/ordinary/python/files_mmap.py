# A memory-mapped file, changed in place and searched.
import mmap

with open("big.bin", "wb") as f:
    f.truncate(1 << 20)
with open("big.bin", "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
    m[4096:4101] = b"HELLO"
    m.flush()
    print(len(m), m.find(b"HELLO"), m[4096:4101])
with open("big.bin", "rb") as f:
    f.seek(4096)
    print(f.read(5))
with mmap.mmap(-1, 8192) as anonymous:
    anonymous.write(b"anonymous")
    anonymous.seek(0)
    print(anonymous.read(9))
