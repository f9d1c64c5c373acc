# Modes, umask, times, access.
import os
import stat

os.umask(0o027)
with open("f", "w") as f:
    f.write("x")
os.mkdir("d")
print(stat.filemode(os.stat("f").st_mode), stat.filemode(os.stat("d").st_mode))
os.chmod("f", 0o4755)
print(oct(stat.S_IMODE(os.stat("f").st_mode) & 0o777))
os.utime("f", (1_000_000_000, 1_234_567_890))
print(int(os.stat("f").st_mtime), os.access("f", os.R_OK), os.access("missing", os.F_OK))
assert os.stat("f").st_uid == os.getuid()
os.chown("f", os.getuid(), os.getgid())
