"""A real box with network rules in the test's internet: what the tests of egress share.

usage: test_X.py PALE [CLIENTS-DIRECTORY] [--user NAME] [--redirect]
As root: boxes are root's; with --user those of that user; as an ordinary user: that user's. With --redirect
the boxes do without TPROXY, as on a kernel that has none.
"""
import atexit
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import standin
from tap import *
from world import zone

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"
PATH = "/usr/local/bin:/usr/bin:/bin"
args = sys.argv[1:]
user = None
if "--user" in args:
    at = args.index("--user")
    user = args[at + 1]
    del args[at:at + 2]
by_redirect = "--redirect" in args
if by_redirect:
    args.remove("--redirect")
root = os.geteuid() == 0
pale = os.path.abspath(args[0])
built = os.path.abspath(args[1]) if len(args) > 1 else None  # clients that had to be compiled
with open(pale, "rb") as f:
    SANITIZED = b"__asan_init" in f.read()
SLACK = 5 if SANITIZED else 1

try:
    world = standin.enter(user)
except standin.NotHere as e:
    skip("boxes in a test internet", str(e), "egress")
    done()

place = os.path.join(world.place, "boxes")
os.mkdir(place, 0o755)
if user:
    shutil.chown(place, user, user)
state = os.path.join(place, "state")
env = {"PATH": PATH, "HOME": place, "LANG": "C.UTF-8", "PALE_STATE_DIR": state}
env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
if not root:
    # In the user namespace of this world root's files are nobody's: a built broker would not be trusted.
    env["PALE_EGRESS_PROGRAM"] = os.path.join(os.path.dirname(os.path.dirname(pale)), "pale-egress")

if by_redirect:
    # What the state directory remembers of this kernel is taken as it is.
    subprocess.run([*(["setpriv", "--reuid", user, "--regid", user, "--init-groups"] if user else []), pale, "run", "--allow",
                    "www.example.com", "--", "true"], env=env, cwd=place, check=True, capture_output=True)
    with open(os.path.join(state, "network"), "r+") as f:
        remembered = f.read()
        f.seek(0)
        f.write(remembered.replace("TPROXY", "REDIRECT"))
        f.truncate()
    plan = subprocess.run([pale, "explain", "--allow", "www.example.com", "--", "true"], env=env, cwd=place, capture_output=True,
                          text=True).stdout
    check("the boxes do without TPROXY", "nftables REDIRECT" in plan and "TPROXY" not in plan, plan)

# Host, port and protocol of what most tests may reach; everything else is refused.
MIRROR = "use www.example.com instead"
RULES = [
    {"host": "www.example.com", "ports": ["80", "443"]},
    {"host": "v4only.example.com", "ports": ["80", "443"]},
    {"host": "v6only.example.com", "ports": ["80", "443"]},
    {"host": "echo.example.com", "port": 7, "protocol": "tcp"},
    {"host": "smtp.example.com", "port": 2525, "protocol": "tcp"},
    {"host": "git.example.com", "port": 22, "protocol": "tcp"},
    {"host": "git.example.com", "port": 443},
    {"host": "udp.example.com", "port": 7, "protocol": "udp"},
    {"host": "*.sub.example.com", "port": 80},
    {"host": "h1only.example.com", "port": 443},
    {"host": "closed.example.com", "port": 444, "protocol": "tcp"},
]
DENY = [{"host": "other.example.com", "reason": MIRROR}]


def network(allow=RULES, deny=DENY, **more):
    return {"network": {"allow": allow, **({"deny": deny} if deny else {}), **more}}


_count = 0


def policy(model):
    """A policy file; returns its path."""
    global _count
    _count += 1
    path = os.path.join(world.place, f"policy-{_count}.json")
    with open(path, "w") as f:
        json.dump({"pale": 1, "limits": {"wall": "200s", "cpu": "200s", "memory": "2GiB", "cpus": 2, "processes": 512}, **model}, f)
    os.chmod(path, 0o644)
    return path


class Run:
    """One box. json: the result; events: the log's lines; out, err: what the command printed."""

    def __init__(self, model, *command, flags=(), data=None, timeout=220, more=None, pass_fds=()):
        self.path = policy(model) if isinstance(model, dict) else model
        line = [*world.prefix, pale, "run", "--json", *(["-p", self.path] if self.path else []), *flags, "--", *command]
        begun = time.monotonic()
        p = subprocess.run(line, input=data, stdin=None if data is not None else subprocess.DEVNULL, capture_output=True,
                           timeout=timeout, env={**env, **(more or {})}, cwd=place, pass_fds=pass_fds)
        self.seconds = time.monotonic() - begun
        self.status, self.raw, self.said = p.returncode, p.stdout, p.stderr.decode(errors="replace")
        self.json, self.events, self.log, self.text, self.out, self.err, self.blocked = {}, [], "", "", "", "", []
        try:
            self.json = json.loads(p.stdout)
        except ValueError:
            return
        self.out, self.err = self.json.get("stdout", ""), self.json.get("stderr", "")
        self.outcome, self.blocked = self.json.get("outcome"), self.json.get("blocked", [])
        if "audit_id" in self.json:
            self.log = os.path.join(state, "runs", self.json["audit_id"], "audit.jsonl")
            with open(self.log, encoding="utf-8") as f:
                self.text = f.read()
            self.events = [json.loads(line) for line in self.text.splitlines()]

    def find(self, blocked=True, **want):
        """Entries of `blocked` (or events) in which each of these is equal, or, for a callable, true."""
        rows = self.blocked if blocked else self.events
        return [e for e in rows if all(v(e.get(k)) if callable(v) else e.get(k) == v for k, v in want.items())]

    def count(self, **want):
        return sum(e.get("count", 1) for e in self.find(**want))

    def __str__(self):
        return (f"status {self.status} after {self.seconds:.2f} s; said {self.said[:3000]}\nout {self.out[:3000]}\nerr "
                f"{self.err[:2000]}\n{json.dumps({k: v for k, v in self.json.items() if k not in ('stdout', 'stderr', 'output')})[:3000]}")


def py(model, code, *arguments, **more):
    return Run(model, PYTHON, "-c", code, *arguments, **more)


def inside(model, cases, flags=(), **more):
    """Runs commands in one box (clients/inside.py); the results are in .cases by name."""
    r = Run(model, PYTHON, os.path.join(HERE, "clients", "inside.py"), data=json.dumps(cases).encode(),
            flags=["--ro", os.path.join(HERE, "clients"), *(["--ro", built] if built else []), *flags], **more)
    try:
        r.cases = json.loads(r.out)
    except ValueError:
        r.cases = {}
        check("the clients ran in their box", False, r)
    return r


def outside(cases, **more):
    """The same without a box."""
    p = world.run([PYTHON, os.path.join(HERE, "clients", "inside.py")], input=json.dumps(cases).encode(), timeout=220,
                  env={**env, "SSL_CERT_FILE": standin.BUNDLE, "REQUESTS_CA_BUNDLE": standin.BUNDLE,
                       "NODE_EXTRA_CA_CERTS": standin.BUNDLE}, cwd=place, **more)
    return json.loads(p.stdout)


def verified(what, r):
    p = world.run([pale, "audit", "verify", r.json.get("audit_id", "none")], env=env)
    check(f"{what}: the log is whole", p.returncode == 0 and any(e["event"] == "box.end" for e in r.events), p.stdout + p.stderr)


def brokers(*parents):
    """The brokers that are children of these processes. A broker is not dumpable: an ordinary user sees no more of it
    than this."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", "rb") as f:
                name, rest = f.read().split(b"(", 1)[1].rsplit(b")", 1)
        except OSError:
            continue
        state, parent = rest.split()[:2]
        if name.startswith(b"pale-egress") and state not in (b"Z", b"X") and int(parent) in parents:
            found.append(int(pid))
    return found


def wait_for(condition, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if got := condition():
            return got
        time.sleep(0.01)
    return condition()


def nothing_left(what="the boxes"):
    """After the last box: no broker that was left to the first process or to this one."""
    wait_for(lambda: not brokers(1, os.getpid()), 3)
    same(f"{what}: no broker is left", brokers(1, os.getpid()), [])
