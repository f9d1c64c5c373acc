"""What the tests of attacks share: TAP, a box with an attack in it, its log, and what is left behind.

usage: test_X.py PALE DIRECTORY-OF-ATTACKS
"""
import atexit
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

pale, programs = map(os.path.abspath, sys.argv[1:3])
root = os.geteuid() == 0
must_work = os.environ.get("PALE_MUST_WORK", "").split(",")
PYTHON = "/usr/bin/python3"
# What a supervisor may be late by on a busy machine. The attacks aim at never.
SLACK = 5

place = os.path.realpath(tempfile.mkdtemp(prefix="pale-attacks."))
os.chmod(place, 0o755)
state = os.path.join(place, "state")
env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": place, "LANG": "C.UTF-8", "PALE_STATE_DIR": state}
env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
number = failed = 0


@atexit.register
def clean_up():
    subprocess.run(["chmod", "-R", "u+rwX", place], check=False)
    shutil.rmtree(place, ignore_errors=True)


def check(what, ok, detail=""):
    global number, failed
    number += 1
    failed += not ok
    print(f"{'ok' if ok else 'not ok'} {number} - {what}")
    if not ok and detail != "":
        print("\n".join("# " + line[:300] for line in str(detail).splitlines()[:30]))
    sys.stdout.flush()
    return ok


def skip(what, why, ability=None):
    """Loud, and a failure where the machine was said to have it."""
    global number, failed
    number += 1
    bad = ability in must_work
    failed += bad
    print(f"{'not ok' if bad else 'ok'} {number} - {what}" + (f": {why}" if bad else f" # SKIP {why}"))


def case(function):
    try:
        function()
    except Exception:
        check(function.__name__.replace("_", " "), False, traceback.format_exc())
    return function


def done():
    print(f"1..{number}")
    sys.exit(failed > 0)


class Run:
    """One box. out, err: what the command printed; events: the log's lines."""

    def __init__(self, *args, data=None, timeout=60, json_output=True, more=None):
        flags = ["--json"] if json_output else []
        begun = time.monotonic()
        p = subprocess.run([pale, "run", *flags, *args], input=data, stdin=None if data is not None else subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, env={**env, **(more or {})})
        self.seconds = time.monotonic() - begun
        self.status, self.raw, self.said = p.returncode, p.stdout, p.stderr.decode(errors="replace")
        self.json, self.events, self.log, self.out, self.err, self.blocked = {}, [], "", "", "", []
        try:
            self.json = json.loads(p.stdout)
        except ValueError:
            return
        if "audit_id" not in self.json:  # nothing ran; self.json["error"] says why
            return
        self.out, self.err = self.json.get("stdout", ""), self.json.get("stderr", "")
        self.outcome, self.blocked = self.json.get("outcome"), self.json.get("blocked", [])
        self.log = os.path.join(state, "runs", self.json["audit_id"], "audit.jsonl")
        with open(self.log, encoding="utf-8") as f:
            self.events = [json.loads(line) for line in f]

    def told(self, **want):
        """Whether the log has an event with these fields."""
        return any(all(e.get(k) == v for k, v in want.items()) for e in self.events)

    def __str__(self):
        return f"status {self.status} after {self.seconds:.2f} s; {self.said}; {json.dumps(self.json)[:1500]}"


def attack(name, *args, flags=(), **more):
    """A program of attacks/ in a box that has it."""
    program = os.path.join(programs, name)
    return Run(*flags, "--ro", program, "--", program, *args, **more)


def outside(name, *args, **more):
    """The same program with nothing around it."""
    return subprocess.run([os.path.join(programs, name), *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=30, check=False, **more)


def write_policy(name, model):
    path = os.path.join(place, name + ".json")
    with open(path, "w") as f:
        json.dump({"pale": 1, **model}, f)
    return path


def on_time(what, r, limit, outcome="wall time"):
    check(f"{what}: it ends by its limit, on time", r.json.get("outcome") == outcome and r.seconds < limit + SLACK, r)


def verified(what, r):
    p = subprocess.run([pale, "audit", "verify", r.json["audit_id"]], env=env, capture_output=True, check=False)
    check(f"{what}: the log is whole", p.returncode == 0 and r.told(event="box.end"), p.stdout + p.stderr)


def cgroups():
    """Directories of control groups of our runs (there may be others' beside them)."""
    runs = os.listdir(os.path.join(state, "runs"))
    return sorted(top for top, _, _ in os.walk("/sys/fs/cgroup") if any(run in os.path.basename(top) for run in runs))


def children_of(pid):
    """All descendants."""
    found, todo = [], [pid]
    while todo:
        try:
            tasks = os.listdir(f"/proc/{todo[-1]}/task")
        except OSError:
            todo.pop()
            continue
        at = todo.pop()
        for t in tasks:
            try:
                with open(f"/proc/{at}/task/{t}/children") as f:
                    new = [int(c) for c in f.read().split()]
            except OSError:
                continue
            found += new
            todo += new
    return found


def alive(pid, start):
    return start_of(pid) == start


def start_of(pid):
    """With the number, what makes a process that one; None: there is none, or only a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            fields = f.read().rsplit(b")", 1)[1].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else fields[19]
