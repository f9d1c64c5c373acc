"""What the tests of cases share: TAP, code run in a box and the same code outside it.

Each case proves two things: that the attack, or the everyday work, does what it should inside, and that
outside it goes the other way (or works as well), so that the test can fail. usage: test_X.py PALE
"""
import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

pale = os.path.abspath(sys.argv[1])
here = os.path.dirname(os.path.abspath(__file__))
root = os.geteuid() == 0
must_work = os.environ.get("PALE_MUST_WORK", "").split(",")
PYTHON = "/usr/bin/python3"  # of the host image, whatever the caller's PATH says
PATH = "/usr/local/bin:/usr/bin:/bin"

place = os.path.realpath(tempfile.mkdtemp(prefix="pale-cases."))
home = os.path.join(place, "home")
work = os.path.join(place, "work")
os.chmod(place, 0o755)
for d in (home, work):
    os.mkdir(d)
env = {"PATH": PATH, "HOME": home, "LANG": "C.UTF-8", "PALE_STATE_DIR": os.path.join(place, "state")}
for name in os.environ:  # a sanitizer build needs its options
    if name.endswith("SAN_OPTIONS"):
        env[name] = os.environ[name]

with open(pale, "rb") as f:
    SANITIZED = b"__asan_init" in f.read()

number = failed = 0


@atexit.register
def clean_up():
    for top, dirs, _ in os.walk(place):
        for d in dirs:
            path = os.path.join(top, d)
            if not os.path.islink(path):
                os.chmod(path, 0o700)
    shutil.rmtree(place, ignore_errors=True)


def check(what, ok, detail=""):
    global number, failed
    number += 1
    failed += not ok
    print(f"{'ok' if ok else 'not ok'} {number} - {what}")
    if not ok and detail != "":
        print("\n".join("# " + line for line in str(detail).splitlines()[:30]))
    sys.stdout.flush()
    return ok


def same(what, got, want):
    return check(what, got == want, f"got  {got!r}\nwant {want!r}")


def skip(what, why, ability=None):
    """Loud, and a failure where the machine was said to have it."""
    global number, failed
    number += 1
    if ability and ability in must_work:
        failed += 1
        print(f"not ok {number} - {what}: {why}, and PALE_MUST_WORK has {ability}")
    else:
        print(f"ok {number} - {what} # SKIP {why}")


def case(function):
    """Runs it at once; an exception is a failed test, and the others still run."""
    try:
        function()
    except Exception:
        check(function.__name__.replace("_", " "), False, traceback.format_exc())
    return function


def done():
    print(f"1..{number}")
    sys.exit(0)


def command(*args):
    return [pale, "run", *args]


def run(*args, data=b"", timeout=30, cwd=None, more=None, **rest):
    """pale run ARGS, with its own streams."""
    return subprocess.run(command(*args), input=data, capture_output=True, timeout=timeout, cwd=cwd or work,
                          env={**env, **(more or {})}, **rest)


class Result:
    def __init__(self, p):
        self.process = p
        try:
            self.all = json.loads(p.stdout)
        except ValueError:
            self.all = {}
        self.out = self.all.get("stdout", "")
        self.err = self.all.get("stderr", "") or (p.stderr or b"").decode(errors="replace")
        self.status = p.returncode
        self.outcome = self.all.get("outcome")
        self.blocked = self.all.get("blocked", [])

    def __repr__(self):
        return (f"status {self.status}, outcome {self.outcome}\nstdout {self.out[:1500]!r}\nstderr "
                f"{self.err[:1500]!r}\n{(self.process.stderr or b'')[:500]!r}\nblocked {str(self.blocked)[:1500]}")

    def was_blocked(self, text):
        return text in json.dumps(self.blocked, ensure_ascii=False)


def box(*args, **more):
    """The same with --json, taken apart."""
    return Result(run("--json", *args, **more))


def py(code, *args, **more):
    """Python code in a box; args are pale's flags."""
    return box(*args, "--", PYTHON, "-c", code, **more)


def outside(code, **more):
    return subprocess.run([PYTHON, "-c", code], capture_output=True, timeout=30, cwd=work, env=env, **more)


def write(path, content="", mode=None):
    path = os.path.join(place, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w" if isinstance(content, str) else "wb") as f:
        f.write(content)
    if mode is not None:
        os.chmod(path, mode)
    return path


def snapshot(top):
    """Names, kinds, modes, owners, times and contents below a directory."""
    seen = {}
    for base, dirs, files in os.walk(top):
        for name in dirs + files + ["."]:
            path = os.path.join(base, name)
            st = os.lstat(path)
            content = None
            if os.path.islink(path):
                content = os.readlink(path)
            elif os.path.isfile(path) and os.access(path, os.R_OK):
                with open(path, "rb") as f:
                    content = f.read()
            seen[os.path.normpath(path)] = (st.st_mode, st.st_uid, st.st_gid, st.st_mtime_ns, st.st_nlink, content)
    return seen


def wait_for(condition, seconds=5):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())


def processes(text):
    """The host's processes whose command line has this text (not ours)."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                line = f.read()
        except OSError:
            continue
        if text.encode() in line and int(pid) != os.getpid():
            found.append(int(pid))
    return found
