# What a program asks about its machine.
import os
import platform
import sys

assert platform.system() == "Linux" and platform.machine() and platform.release() and platform.node()
assert os.cpu_count() >= 1 and len(os.sched_getaffinity(0)) >= 1
assert os.getloadavg()[0] >= 0 and os.sysconf("SC_PAGE_SIZE") == 4096
print(platform.python_implementation(), sys.version_info[0], sys.byteorder, os.name)
print(platform.freedesktop_os_release()["ID"] != "", platform.libc_ver()[0])
