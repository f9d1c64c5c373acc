# Find duplicate files by their checksums.
import hashlib
import os
from collections import defaultdict

os.mkdir("photos")
for name, content in (("a.jpg", b"one"), ("b.jpg", b"two"), ("c.jpg", b"one"), ("d.jpg", b"three")):
    with open(f"photos/{name}", "wb") as f:
        f.write(content)
by_sum = defaultdict(list)
for entry in sorted(os.scandir("photos"), key=lambda e: e.name):
    with open(entry.path, "rb") as f:
        by_sum[hashlib.file_digest(f, "sha256").hexdigest()].append(entry.name)
for digest, names in by_sum.items():
    print(digest[:16], names)
