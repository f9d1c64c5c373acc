# Extended attributes, or word that there are none; scheduling; niceness.
import errno
import os

with open("f", "w") as f:
    f.write("x")
try:
    os.setxattr("f", "user.comment", b"hello")
    assert os.getxattr("f", "user.comment") == b"hello"
except OSError as e:
    assert e.errno in (errno.ENOTSUP, errno.EPERM), e
try:
    os.getxattr("f", "user.missing")
except OSError as e:
    assert e.errno in (errno.ENODATA, errno.ENOTSUP), e
print(os.sched_getscheduler(0), os.nice(0) >= 0, os.nice(1) >= 1)
os.sched_setaffinity(0, os.sched_getaffinity(0))
os.sched_yield()
print(os.getpriority(os.PRIO_PROCESS, 0) >= 1)
