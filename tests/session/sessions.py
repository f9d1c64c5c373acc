"""What the tests of sessions share: TAP, sessions of a state directory of their own, and what is said at their doors.

usage: test_X.py PALE PALE-BOX TEST-SESSION-NEW
"""
import atexit
import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

pale, box_program, new_program = map(os.path.abspath, sys.argv[1:4])
root = os.geteuid() == 0
must_work = os.environ.get("PALE_MUST_WORK", "").split(",")
place = os.path.realpath(tempfile.mkdtemp(prefix="pale-session."))
os.chmod(place, 0o755)
state = os.path.join(place, "state")
env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": place, "LANG": "C.UTF-8", "PALE_STATE_DIR": state,
       "PALE_BOX_PROGRAM": box_program}
env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
number = failed = 0
sessions = []


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


@atexit.register
def clean_up():
    for s in sessions:
        s.end()
    # Those of whose start nothing was heard, too.
    subprocess.run([pale, "session", "rm", "--all"], env=env, check=False, capture_output=True)
    subprocess.run(["chmod", "-R", "u+rwX", place], check=False)
    shutil.rmtree(place, ignore_errors=True)


class Refused(Exception):
    def __init__(self, error):
        super().__init__(error["message"])
        self.code, self.message = error["code"], error["message"]


class Door:
    """A connection to a box's control socket."""

    def __init__(self, run):
        directory = os.path.join(state, "runs", run, "door")
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        # The path of the directory may be too long for a socket.
        fd = os.open(directory, os.O_PATH)
        try:
            self.socket.connect(f"/proc/self/fd/{fd}/control")
        finally:
            os.close(fd)
        self.rest = b""

    def send(self, command, **arguments):
        self.socket.sendall(json.dumps({"pale": 1, "command": command, "arguments": arguments}).encode() + b"\n")

    def receive(self):
        parts = [self.rest]
        while b"\n" not in parts[-1]:
            more = self.socket.recv(1 << 20)
            if not more:
                raise EOFError("the door was closed")
            parts.append(more)
        line, _, self.rest = b"".join(parts).partition(b"\n")
        answer = json.loads(line)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["result"]

    def __call__(self, command, **arguments):
        self.send(command, **arguments)
        return self.receive()

    def refused(self, command, **arguments):
        """The error, or None if it was done."""
        try:
            self(command, **arguments)
        except Refused as e:
            return e
        return None

    def close(self):
        self.socket.close()


class Session(Door):
    def __init__(self, name=None, cwd=None, **policy):
        model = {"pale": 1, **policy}
        model.setdefault("session", {}).setdefault("kernel", "python")
        p = subprocess.run([new_program, json.dumps(model)] + ([name] if name else []), env=env, cwd=cwd or place,
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
        if p.returncode:
            raise Exception(p.stderr)
        self.id = p.stdout.strip()
        super().__init__(self.id)
        sessions.append(self)
        info = self("info")
        self.pid, self.supervisor = info["pid"], info["supervisor_pid"]

    def run(self, code, **arguments):
        """Executes it and waits: the whole answer, its text output beside it."""
        answer = self("session.exec", code=code, wait_ms=60000, **arguments)
        answer["out"] = "".join(e["text"] for e in answer["events"] if e["type"] == "stdout")
        answer["err"] = "".join(e.get("text") or e.get("traceback") for e in answer["events"]
                                if e["type"] in ("stderr", "error"))
        return answer

    def log(self):
        with open(os.path.join(state, "runs", self.id, "audit.jsonl"), encoding="utf-8") as f:
            return [json.loads(line) for line in f]

    def end(self):
        try:
            self.close()
            d = Door(self.id)
            d("box.destroy")
            d.socket.recv(1)
        except OSError:
            pass
        except EOFError:
            pass
        if self in sessions:
            sessions.remove(self)


def start_of(pid):
    """With the number, what makes a process that one; None: there is none, or only a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            fields = f.read().rsplit(b")", 1)[1].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else fields[19]


def cpu_of(pid):
    with open(f"/proc/{pid}/stat", "rb") as f:
        fields = f.read().rsplit(b")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def within(seconds, condition):
    until = time.monotonic() + seconds
    while not (ok := condition()) and time.monotonic() < until:
        time.sleep(0.005)
    return ok


def descendants(pid):
    found, todo = [], [pid]
    while todo:
        at = todo.pop()
        try:
            new = []
            for t in os.listdir(f"/proc/{at}/task"):
                with open(f"/proc/{at}/task/{t}/children") as f:
                    new += [int(c) for c in f.read().split()]
        except OSError:
            continue
        found += new
        todo += new
    return found


def cgroups(run):
    return sorted(top for top, _, _ in os.walk("/sys/fs/cgroup") if run in os.path.basename(top))
