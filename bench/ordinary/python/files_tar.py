# A compressed tar archive with a link in it.
import os
import tarfile

os.mkdir("pack")
with open("pack/data.txt", "w") as f:
    f.write("data\n")
os.symlink("data.txt", "pack/link")
with tarfile.open("pack.tar.gz", "w:gz") as t:
    t.add("pack")
with tarfile.open("pack.tar.gz") as t:
    for member in sorted(t.getmembers(), key=lambda m: m.name):
        print(member.name, "link" if member.issym() else member.size if member.isfile() else "dir")
    t.extractall("unpacked")
print(os.readlink("unpacked/pack/link"), open("unpacked/pack/link").read().strip())
