"""What the tests of src/files/ share: runs whose overlay is real, and trees to compare."""
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).parent
pale, tool, helper = map(os.path.abspath, sys.argv[1:4])


def base():
    """In memory, for the tests that make many thousands of files, if there is room."""
    shm = "/dev/shm"
    if pathlib.Path(sys.argv[0]).stem not in ("test_scale", "test_collect") or not os.access(shm, os.W_OK):
        return None
    fs = os.statvfs(shm)
    return shm if fs.f_bavail * fs.f_frsize > 1 << 30 and (fs.f_favail > 300000 or fs.f_files == 0) else None


top = pathlib.Path(tempfile.mkdtemp(prefix="pale-files-", dir=base()))
state = top / "state"
home = top / "home"
home.mkdir()
env = {**os.environ, "PALE_STATE_DIR": str(state), "PALE_PATCH_HELPER": helper, "LC_ALL": "C.UTF-8",
       "HOME": str(home)}
for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_CONFIG"):
    env.pop(name, None)
number = 0
failed = False


def works():
    """Whether this user can mount an overlay in namespaces; PALE_MUST_WORK decides what follows if not."""
    command = ["unshare", *("-m" if os.getuid() == 0 else "-Urm",), "true"]
    if subprocess.run(command, capture_output=True).returncode == 0:
        return
    if "userns" in os.environ.get("PALE_MUST_WORK", "").split(","):
        print("1..1\nnot ok 1 - mount namespaces work here")
        sys.exit(1)
    print("1..0 # SKIP no mount namespaces for this user: NOTHING of src/files/ was tested")
    sys.exit(0)


def test(what):
    def decorator(function):
        global number, failed
        number += 1
        try:
            function()
            print(f"ok {number} - {what}", flush=True)
        except Exception as e:  # each failure is told, and the rest still runs
            import traceback
            print(f"not ok {number} - {what}")
            print("# " + "".join(traceback.format_exception(e)).replace("\n", "\n# "), flush=True)
            failed = True
        return function
    return decorator


def finish():
    remove(top)
    print(f"1..{number}")
    sys.exit(failed)


def remove(path):
    subprocess.run(["chmod", "-R", "u+rwX", str(path)], capture_output=True)
    subprocess.run(["rm", "-rf", str(path)])


def fresh(name="w"):
    """An empty directory of its own."""
    return pathlib.Path(tempfile.mkdtemp(prefix=name + "-", dir=top))


class Inside:
    """A box without a box: code that ran in an overlay over lower, whose upper directory is alive."""

    def __init__(self, lower, code, copy=False):
        self.lower, self.work = lower, fresh("box")
        command = ["unshare", "-m" if os.getuid() == 0 else "-Urm", sys.executable, "-B", str(here / "inside.py"),
                   str(lower), str(self.work), "1" if copy else "0"]
        self.p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.p.stdin.write(code + "\nEND\n")
        self.p.stdin.flush()
        assert self.p.stdout.readline() == "ready\n", "the code in the overlay failed"

    @property
    def upper(self):
        return f"/proc/{self.p.pid}/root{self.work}/up/u"

    @property
    def userns(self):
        return "-" if os.getuid() == 0 else f"/proc/{self.p.pid}/ns/user"

    def capture(self, started="-"):
        p = subprocess.run([tool, "run", self.upper, str(self.lower), self.userns, str(started)], env=env,
                           capture_output=True, text=True, timeout=120)
        assert p.returncode == 0, p.stderr
        words = p.stdout.split()
        return words[0], {k: int(v) for k, v in (w.split("=") for w in words[1:])}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.p.stdin.close()
        self.p.stdout.close()
        self.p.wait()


def run(lower, code, copy=False):
    """Changes lower in an overlay and captures: the run's id, the counts, and the merged view."""
    with Inside(lower, code, copy) as box:
        run_id, counts = box.capture()
    return run_id, counts, box.work / "expected"


def cli(*args, status=0, cwd=None, raw=False):
    p = subprocess.run([pale, *map(os.fsencode, map(str, args))], env=env, capture_output=True, timeout=120, cwd=cwd,
                       stdin=subprocess.DEVNULL)
    assert status is None or p.returncode == status, f"{args}: status {p.returncode}, not {status}: {p.stdout!r} {p.stderr!r}"
    return p.stdout if raw else p.stdout.decode()


def entries(run_id, *args):
    """path -> entry, from pale diff --json."""
    found = {}
    for overlay in json.loads(cli("diff", "--json", run_id, *args))["overlays"]:
        for e in overlay["entries"]:
            path = bytes.fromhex(e["path_hex"]) if "path_hex" in e else e["path"].encode()
            found[os.fsdecode(path)] = e
    return found


def tree(root, times=True, dirs=True):
    """Everything in a tree that apply promises to keep, by path."""
    found = {}
    root = os.fsencode(str(root))
    for at, names, files in os.walk(root):
        for name in names + files:
            path = os.path.join(at, name)
            st = os.lstat(path)
            rel = os.fsdecode(os.path.relpath(path, root))
            if stat.S_ISLNK(st.st_mode):
                found[rel] = ("link", os.readlink(path))
            elif stat.S_ISDIR(st.st_mode):
                if dirs:
                    found[rel] = ("dir", st.st_mode & 0o1777)
            elif stat.S_ISREG(st.st_mode):
                with open(path, "rb") as f:
                    data = f.read()
                found[rel] = ("file", st.st_mode & 0o7777, data, st.st_mtime_ns if times else 0)
            else:
                found[rel] = ("special",)
    return found


def same(a, b):
    if a == b:
        return
    lines = []
    for path in sorted(set(a) | set(b)):
        if a.get(path) != b.get(path):
            lines.append(f"{path!r}: {str(a.get(path))[:200]} is not {str(b.get(path))[:200]}")
    raise AssertionError("trees differ:\n" + "\n".join(lines[:20]))


def leftovers(root):
    return [os.path.join(at, n) for at, _, files in os.walk(root) for n in files if n.startswith(".pale-")]
