# Sizes of a tree, as du would sum them.
import os

for i in range(20):
    os.makedirs(f"tree/d{i % 4}/s{i % 2}", exist_ok=True)
    with open(f"tree/d{i % 4}/s{i % 2}/f{i}.bin", "wb") as f:
        f.write(bytes(i * 100))
total = 0
for folder, dirs, files in os.walk("tree"):
    dirs.sort()
    here = sum(os.path.getsize(os.path.join(folder, name)) for name in files)
    total += here
    print(f"{folder:12} {len(files):3} files {here:6} bytes")
print("total", total)
assert total == sum(i * 100 for i in range(20))
