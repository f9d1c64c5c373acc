# Symbolic and hard links, and what stat says of them.
import os

with open("original", "w") as f:
    f.write("content")
os.link("original", "hard")
os.symlink("original", "soft")
os.symlink("nowhere", "dangling")
print(os.stat("hard").st_nlink, os.path.samefile("hard", "original"), os.readlink("soft"))
print(os.path.islink("soft"), os.path.exists("dangling"), os.path.lexists("dangling"))
os.unlink("original")
print(open("hard").read(), os.path.exists("soft"), os.stat("hard").st_nlink)
print(os.path.basename(os.path.realpath("soft")))
