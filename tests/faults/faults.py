"""What the tests of faults share: a box whose command says what holds it, with something missing around it.

usage: test_X.py PALE DIRECTORY-OF-PROGRAMS

The promise: a fault stops the launch, with status 125 and a message, or the run is what it would have been
without. There is no third way: no box that lacks a part, no process that waits for ever, nothing left behind.
"""
import os
import re
import socket
import sys

sys.dont_write_bytecode = True
sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "attacks"))
from attacked import *  # noqa: F401,F403

INJECT = os.path.join(programs, "inject")
CANARY = os.path.join(programs, "canary")
# Where nothing works any more a supervisor still ends what it began; the wait for a box that does
# not get ready is 20 s of it.
TIMEOUT = 60
ALL = os.environ.get("PALE_FAULTS") == "all"

SECRET = os.path.join(place, "secret")
with open(SECRET, "w") as f:
    f.write("not for boxes")
os.chmod(SECRET, 0o644)
server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen(64)
abstract = socket.socket(socket.AF_UNIX)
abstract.bind("\0" + os.path.basename(place))
abstract.listen(64)
COMMAND = ["--ro", CANARY, "--", CANARY, SECRET, str(server.getsockname()[1]), os.path.basename(place)]


def same(text):
    """What a box said of itself, without what differs from one to the next."""
    text = re.sub(r"01[0-9a-hjkmnp-tv-z]{24}", "ID", text)
    text = re.sub(r"(mountinfo: )\d+ \d+ \d+:\d+", r"\1", text)
    text = re.sub(r"\b(uid=|gid=|uid_map: +\d+ +)\d{5,}", r"\1N", text)
    text = re.sub(r"(limit 9:) \d+ ", r"\1 ", text)  # a soft limit of the caller's address space is its own to set
    text = re.sub(r"(NStgid|NSsid):\t\d+", r"\1", text)
    text = re.sub(r"(Cpus_allowed_list):.*", r"\1", text)
    return text


class Faulty:
    """One run. fault: options of the injector, or None: without it; flags: of `pale run`; more: variables;
    before: what starts it."""

    def __init__(self, fault=(), flags=(), command=None, more=None, program=None, before=(), **popen):
        self.report_path = os.path.join(place, "report")
        self.hangs = False
        injected = [INJECT, "-r", self.report_path, *fault] if fault is not None else []
        with open(self.report_path, "w"):
            pass
        p = subprocess.Popen([*before, *injected, program or pale, "run", *flags, *(COMMAND if command is None else command)],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             start_new_session=True, env={**env, **(more or {})}, **popen)
        begun = time.monotonic()
        try:
            out, said = p.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            self.hangs = True
            self.processes = [(c, open(f"/proc/{c}/stack").read() if root else "") for c in children_of(p.pid)]
            p.kill()
            out, said = p.communicate()
        self.seconds = time.monotonic() - begun
        self.status = p.returncode
        self.out, self.said = out.decode(errors="replace"), said.decode(errors="replace")
        with open(self.report_path) as f:
            self.report = f.read()
        self.failed = [line.split(": ", 1)[1] for line in self.report.splitlines() if line.startswith("failed")]
        self.calls = {int(w[1]): int(w[3]) for w in map(str.split, self.report.splitlines()) if w[:1] == ["process"]}

    def wrong(self, normal):
        """What of the promise is not kept, or None."""
        if self.hangs:
            return f"hangs: {self.processes}"
        if "HOLE" in self.out:
            return "a hole: " + "; ".join(l for l in self.out.splitlines() if "HOLE" in l)
        # Where it was ended in the middle, the last line may be half of one.
        have, want = same(self.out if self.status == 0 else self.out[:self.out.rfind("\n") + 1]).splitlines(), normal.splitlines()
        other = [l for l in have if l not in want and "/etc/matplotlibrc" not in l]  # or a link to another
        missing = [l for l in (want if self.status == 0 else want[:len(have)]) if l not in have]
        # A file of the host that could not be looked at is not shown: less, never more.
        missing = [l for l in missing if not re.match(r"/proc/self/mountinfo:  /(etc|var/cache)/\S* /\S* ro,", l)]
        if other or missing:
            return f"another box: {other[:5]} for {missing[:5]}"
        # Before main() it is the C library that ends it.
        if self.status in (127, 139, -11) and not self.out and self.calls.get(0, 99) < 20:
            return None
        # As if it had been killed; and said so.
        if self.status == 128 + signal.SIGKILL and "was destroyed" in self.said:
            return None
        # What could not be passed on looks to the command like a reader who has gone.
        if self.status == 128 + signal.SIGPIPE and "cannot pass the command's output on" in self.said:
            return None
        if self.status not in (0, 125):
            # The command could not be executed: as with any shell.
            if not (self.status in (126, 127) and not self.out and self.said.startswith("pale: ")):
                return f"status {self.status}"
        if self.status == 125 and not re.search("^pale: ", self.said, re.M) and \
                not any(f.startswith(("write", "writev")) for f in self.failed):
            return "no message"
        if "left " in self.report:
            return "left: " + self.report
        return None

    def __str__(self):
        return f"status {self.status} after {self.seconds:.2f} s; {self.said[:600]}; {' | '.join(self.failed[:4])}"


def what_is_there():
    """Of this machine, what a run could leave."""
    return len(open("/proc/self/mountinfo").readlines())


before = what_is_there()


def nothing_left(what):
    """After faults, in an order: the next command works and closes what they left; then there is nothing."""
    for log in glob.glob(os.path.join(state, "runs", "*", "audit.jsonl")):
        # An empty log that is young may belong to a run that is about to begin.
        if os.path.getsize(log) == 0:
            os.utime(log, (1, 1))
    r = Faulty(None, command=["--", "true"])
    check(f"{what}: the next command works", r.status == 0, r)
    active = os.path.join(state, "active")
    left = [run for run in os.listdir(active) if os.path.exists(os.path.join(state, "runs", run, "audit.jsonl"))]
    check(f"{what}: no run is open", not left, left[:5])
    p = subprocess.run([pale, "audit", "verify", "--all"], env=env, capture_output=True, check=False)
    check(f"{what}: all logs are whole", p.returncode == 0,
          b"\n".join(l for l in (p.stdout + p.stderr).splitlines() if b" whole " not in l)[-1200:])
    # The last process of a box that was killed may still be on its way.
    left = wait_for_none(processes)
    check(f"{what}: no process is left", not left, left[:5])
    left = wait_for_none(cgroups)
    check(f"{what}: no control group is left", not left, left[:5])
    check(f"{what}: no mount is left", what_is_there() == before)
    runs = os.listdir(os.path.join(state, "runs"))
    places = [os.path.join("/run/pale" if root else os.path.join(state, "run"), run) for run in runs]
    left = [p for p in places if os.path.exists(p)]
    check(f"{what}: no runtime directory is left", not left, left[:5])


def processes():
    """Those of our boxes and their supervisors: all have the secret's path in their arguments."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as f:
                if SECRET.encode() in f.read():
                    found.append(path)
        except OSError:
            pass
    return found


def ours():
    """Processes that have our state directory for theirs, which all of Pale's have but those inside boxes."""
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as f:
                if f"PALE_STATE_DIR={state}".encode() in f.read() and path.split("/")[2] != str(os.getpid()):
                    found.append(int(path.split("/")[2]))
        except OSError:
            pass
    return found


def wait_for_none(what):
    left = what()
    until = time.monotonic() + 20
    while left and time.monotonic() < until:
        time.sleep(0.05)
        left = what()
    return left


def normal_box(flags=()):
    r = Faulty((), flags)
    check("without a fault the canary's box is whole", r.status == 0 and r.out.endswith("done\n") and "HOLE" not in r.out, str(r) + r.out)
    return same(r.out)
