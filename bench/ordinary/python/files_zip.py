# A zip archive, written, listed, tested, extracted.
import os
import zipfile

os.makedirs("in/sub")
for name in ("in/a.txt", "in/sub/b.txt"):
    with open(name, "w") as f:
        f.write(name * 100)
with zipfile.ZipFile("out.zip", "w", zipfile.ZIP_DEFLATED) as z:
    for folder, _, files in os.walk("in"):
        for name in sorted(files):
            path = os.path.join(folder, name)
            z.write(path, os.path.relpath(path, "in"))
with zipfile.ZipFile("out.zip") as z:
    assert z.testzip() is None
    for info in z.infolist():
        print(info.filename, info.file_size)
    z.extractall("out")
print(open("out/sub/b.txt").read() == "in/sub/b.txt" * 100)
