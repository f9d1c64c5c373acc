"""In namespaces of its own: mounts an overlay over LOWER in WORK, runs the code on stdin in it (up to a
line "END"), copies the merged view to WORK/expected if asked to, says "ready", and waits for the end of
stdin. usage: inside.py LOWER WORK COPY(0|1)"""
import os
import shutil
import subprocess
import sys

lower, work, copy = sys.argv[1:4]
os.chdir(work)
os.makedirs("up", exist_ok=True)
code = []
for line in sys.stdin:
    if line == "END\n":
        break
    code.append(line)


def mount(*args):
    subprocess.run(["mount", *args], check=True)


mount("-t", "tmpfs", "none", "up")
for d in ("u", "w", "m"):
    os.mkdir(f"up/{d}")
escaped = lower.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")
mount("-t", "overlay", "overlay", "-o",
      f"lowerdir={escaped},upperdir={work}/up/u,workdir={work}/up/w,userxattr,index=off,metacopy=off,xino=off",
      f"{work}/up/m")
os.chdir("up/m")
os.umask(0o022)
exec(compile("".join(code), "changes", "exec"), {"os": os, "shutil": shutil, "subprocess": subprocess})
if copy == "1":
    subprocess.run(["cp", "-a", f"{work}/up/m", f"{work}/expected"], check=True)
os.chdir("/")
print("ready", flush=True)
sys.stdin.read()
