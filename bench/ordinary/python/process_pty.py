# A program at a terminal of its own.
import os
import pty
import subprocess

master, slave = pty.openpty()
child = subprocess.Popen(["sh", "-c", "test -t 0 && test -t 1 && echo a terminal; stty size"],
                         stdin=slave, stdout=slave, stderr=slave, close_fds=True)
os.close(slave)
out = b""
while True:
    try:
        data = os.read(master, 1024)
    except OSError:  # the terminal's other side is closed
        break
    if not data:
        break
    out += data
print(child.wait(), out.decode().split())


def read(fd):
    return os.read(fd, 1024)


print(pty.spawn(["sh", "-c", "tty >/dev/null && echo spawned"], read))
