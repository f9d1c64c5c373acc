# What os offers below open(): dup, pread, sendfile, copy_file_range, memfd, seek past holes.
import os

fd = os.open("f", os.O_RDWR | os.O_CREAT, 0o600)
os.write(fd, b"0123456789" * 100)
print(os.pread(fd, 5, 10), os.pwrite(fd, b"AB", 3), os.lseek(fd, 0, os.SEEK_CUR))
other = os.dup(fd)
os.lseek(other, 0, os.SEEK_SET)
print(os.read(fd, 6))
with open("g", "wb") as g, open("h", "wb") as h:
    print(os.sendfile(g.fileno(), fd, 0, 500), os.copy_file_range(fd, h.fileno(), 1000, 0))
memory = os.memfd_create("scratch")
os.write(memory, b"in memory")
print(os.fstat(memory).st_size)
os.posix_fallocate(fd, 0, 8192)
os.ftruncate(fd, 10)
print(os.fstat(fd).st_size, os.get_inheritable(fd))
r, w = os.pipe2(os.O_NONBLOCK)
try:
    os.read(r, 1)
except BlockingIOError as e:
    print(type(e).__name__)
