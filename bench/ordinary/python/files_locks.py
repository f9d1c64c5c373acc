# flock and lockf between two processes.
import fcntl
import os
import subprocess
import sys

child = """
import fcntl, sys
f = open("lock", "r+")
for lock in (fcntl.flock, fcntl.lockf):
    try:
        lock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        print("got it")
    except BlockingIOError:
        print("taken")
"""
with open("lock", "w") as f:
    fcntl.flock(f, fcntl.LOCK_EX)
    fcntl.lockf(f, fcntl.LOCK_EX)
    print(subprocess.run([sys.executable, "-c", child], capture_output=True, text=True).stdout.split("\n"))
print(subprocess.run([sys.executable, "-c", child], capture_output=True, text=True).stdout.split("\n"))
print(os.path.getsize("lock"))
