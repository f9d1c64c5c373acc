# Everything of tempfile.
import os
import tempfile

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "x")
    with open(path, "w") as f:
        f.write("temporary")
    print(os.path.getsize(path))
assert not os.path.exists(folder)
with tempfile.NamedTemporaryFile("w+", suffix=".txt") as f:
    f.write("named")
    f.flush()
    print(open(f.name).read(), f.name.endswith(".txt"))
with tempfile.SpooledTemporaryFile(max_size=10) as f:
    f.write(b"more than ten bytes")
    f.seek(0)
    print(f.read())
fd, path = tempfile.mkstemp(dir=".")
os.close(fd)
os.unlink(path)
with tempfile.TemporaryFile() as f:
    print(f.write(b"no name"))
