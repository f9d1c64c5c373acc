# inotify through ctypes, as a small file watcher does it.
import ctypes
import os
import struct

libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(os.O_CLOEXEC)
assert fd >= 0, os.strerror(ctypes.get_errno())
os.mkdir("watched")
assert libc.inotify_add_watch(fd, b"watched", 0x100 | 0x2 | 0x200) >= 0  # create, modify, delete
with open("watched/new", "w") as f:
    f.write("x")
os.unlink("watched/new")
data, seen = os.read(fd, 4096), []
while data:
    _, mask, _, length = struct.unpack_from("iIII", data)
    seen.append((hex(mask), data[16:16 + length].rstrip(b"\0").decode()))
    data = data[16 + length:]
print(seen)
