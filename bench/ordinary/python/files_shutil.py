# Copy, move and remove trees.
import os
import shutil

os.makedirs("a/b")
with open("a/b/x.txt", "w") as f:
    f.write("x")
os.chmod("a/b/x.txt", 0o640)
shutil.copytree("a", "copy")
shutil.move("copy/b", "moved")
assert oct(os.stat("moved/x.txt").st_mode & 0o777) == "0o640"
shutil.rmtree("a")
print(sorted(os.listdir(".")), os.listdir("copy"))
usage = shutil.disk_usage(".")
assert usage.total >= usage.used and usage.free > 0
print(shutil.which("sh") is not None)
