# The devices that every machine has.
import os
import stat

for name in ("null", "zero", "full", "random", "urandom", "tty"):
    assert stat.S_ISCHR(os.stat(f"/dev/{name}").st_mode), name
with open("/dev/null", "r+b", buffering=0) as f:
    print(f.write(b"x" * 1000), f.read())
print(open("/dev/zero", "rb").read(4), len(open("/dev/urandom", "rb").read(16)))
try:
    with open("/dev/full", "w") as f:
        f.write("x")
except OSError as e:
    print(e.strerror)
for name in ("fd", "stdin", "stdout", "stderr", "shm", "pts"):
    assert os.path.exists(f"/dev/{name}") or name == "stdin", name
with open("/dev/shm/a-test", "w") as f:
    f.write("shared")
os.unlink("/dev/shm/a-test")
r, w = os.pipe()
with open(f"/dev/fd/{w}", "w") as f:
    f.write("by a descriptor's name")
print(os.read(r, 100))
