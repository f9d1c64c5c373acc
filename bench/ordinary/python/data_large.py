# A hundred megabytes in memory and forty on the disk.
import os

block = bytearray(100 << 20)
for i in range(0, len(block), 4096):
    block[i] = 1
print(sum(block[::4096]))
with open("large", "wb") as f:
    for _ in range(40):
        f.write(memoryview(block)[: 1 << 20])
print(os.path.getsize("large") >> 20)
os.unlink("large")
