"""Zygotes: the boxes of a pool whose kernels are forks of one interpreter. What such a box is allowed is what
any box is, nothing in it reaches the zygote or another box, nothing is the same in two of them that must not
be, and whichever process is killed, nothing of a box is left half alive.

usage: test_zygote.py PALE PALE-BOX
"""
import signal

from cli import *  # noqa: F403

FLAGS = ["--import", "numpy", "--memory", "300MiB", "--processes", "40"]


def pool(*args):
    return subprocess.run([pale, "pool", *args], env=env, text=True, capture_output=True, timeout=180)


def pools():
    return json.loads(pool("ls", "--json").stdout)


def until(what, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = what()
        if value:
            return value
        time.sleep(0.02)
    return None


def proc(pid, name):
    try:
        with open(f"/proc/{pid}/{name}") as f:
            return f.read()
    except OSError:
        return ""


def start_of(pid):
    return proc(pid, "stat").rpartition(")")[2].split()[19:20]


def alive(pid, start):
    return bool(start) and start_of(pid) == start and " Z " not in proc(pid, "stat").rpartition(")")[2][:4]


def children(pid):
    return [int(c) for c in proc(pid, f"task/{pid}/children").split()]


def tree(pid):
    found = [pid]
    for p in found:
        found += children(p)
    return found


def namespaces(pid):
    return {kind: os.readlink(f"/proc/{pid}/ns/{kind}") for kind in ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")}


class Zygote:
    """Of the only pool: the pool's process, the zygote's first process, the zygote."""

    def __init__(self):
        self.pool = pools()[0]["pid"]
        found = until(lambda: [(keeper, z) for keeper in children(self.pool) if "pale-init" in proc(keeper, "cmdline")
                               for z in children(keeper) if z in range(1, 1 << 30) and self.is_zygote(z)])
        self.keeper, self.pid = found[0]

    def is_zygote(self, pid):
        return "--serve" in proc(pid, "cmdline") and proc(pid, "status").split("NSpid:")[1].split("\n")[0].split()[1:] and \
            int(proc(pid, "status").split("NSpid:")[1].split("\n")[0].split()[1]) > 1000


class Box:
    def __init__(self, *flags):
        self.name = new(*(flags or FLAGS))
        o = show(self.name)
        self.supervisor, self.init = o["supervisor_pid"], o["pid"]
        keepers = [p for p in os.listdir("/proc") if p.isdigit()]
        space = os.readlink(f"/proc/{self.init}/ns/pid")
        self.inside = []
        for p in keepers:
            try:
                if os.readlink(f"/proc/{p}/ns/pid") == space:
                    self.inside.append(int(p))
            except OSError:
                pass
        self.inside.sort(key=lambda p: int(proc(p, "status").split("NSpid:")[1].split("\n")[0].split()[-1]))
        self.base = self.inside[1]  # the fork itself, the lowest number after the first process
        self.tasks = [(p, start_of(p)) for p in [self.supervisor, *self.inside]]

    def run(self, code, **more):
        return result(self.name, code, **more)

    def value(self, code):
        """What it prints, as JSON."""
        o = self.run("import json\n" + code)
        try:
            return json.loads(printed(o))
        except ValueError:
            raise RuntimeError(json.dumps(o)[:1500]) from None

    def ends(self):
        return until(lambda: not [t for t in self.tasks if alive(*t)], 5)

    def works(self):
        return printed(self.run("print(6 * 7)")) == "42\n"


def ready(n=2):
    return until(lambda: pools() and pools()[0]["ready"] == n)


def end():
    pool("stop", "--all")


atexit.register(end)

cold = Box()
check("without a pool the kernel is started in the box", "--serve" not in proc(cold.base, "cmdline"))
DRIVERS = "import os; print(os.listdir('/etc/pale'))"
check("from the driver in it", printed(cold.run(DRIVERS)) == "['python.py']\n", cold.run(DRIVERS))
r = pool("start", "-n", "2", *FLAGS)
check("a pool starts", r.returncode == 0, r.stderr)
zygote = Zygote()
one, two = Box(), Box()

LOOK = """
import os, re
status = dict(l.split(":", 1) for l in open("/proc/self/status"))
def attempt(call, *args):
    try:
        call(*args)
        return "done"
    except OSError as e:
        return e.errno
print(json.dumps({
    "status": {k: status[k].split() for k in ("Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapAmb", "NoNewPrivs",
                                               "Seccomp", "Seccomp_filters", "SigIgn", "SigBlk", "Umask", "Threads")},
    "limits": open("/proc/self/limits").read(),
    "env": dict(os.environ),
    "cwd": os.getcwd(),
    "fds": sorted(int(f) for f in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + f)),
    "kinds": sorted({os.readlink("/proc/self/fd/" + f).split(":")[0] for f in os.listdir("/proc/self/fd")
                     if os.path.exists("/proc/self/fd/" + f)}),
    "pids": sorted(int(p) for p in os.listdir("/proc") if p.isdigit()),
    "groups": open("/proc/self/cgroup").read(),
    "shared": re.findall(r"rw-s .*? (\\d+) +(.*)", open("/proc/self/maps").read()),
    "cpus": os.cpu_count(), "sched": [os.sched_getscheduler(0), os.nice(0), len(os.sched_getaffinity(0))],
    "own": [attempt(os.listdir, "/proc/self/ns"), attempt(os.listdir, "/proc/self/fdinfo")],
    "oom": open("/proc/self/oom_score_adj").read(),
    "mounts": sorted(" ".join(l.split()[3:6]) for l in open("/proc/self/mountinfo")),
    "keys": attempt(open, "/proc/keys"),
}))
"""


@case
def test_as_any_box():
    """A box of the same policy whose kernel was started in it is the measure."""
    check("a pool's is a fork", "--serve" in proc(one.base, "cmdline"))
    want, got = cold.value(LOOK), one.value(LOOK)
    for o in (want, got):
        o["groups"] = [line.replace(line.partition("pale-")[2], "") for line in o["groups"].splitlines()]
        o["shared"] = [what for _, what in o["shared"]]
        del o["pids"]
    for key in sorted(want):
        same(f"{key}: as in any box", got[key], want[key])
    same("no capability", [got["status"][c] for c in ("CapInh", "CapPrm", "CapEff", "CapAmb")], [["0" * 16]] * 4)
    same("no new privileges, and one filter", [got["status"][c] for c in ("NoNewPrivs", "Seccomp", "Seccomp_filters")],
         [["1"], ["2"], ["1"]])
    if any("pale-" in line for line in want["groups"]):
        check("it is in the box's own groups", show(one.name)["id"] in one.value(LOOK)["groups"])
    session("rm", cold.name)


@case
def test_namespaces():
    z, host = namespaces(zygote.pid), namespaces("self")
    a, b = namespaces(one.base), namespaces(two.base)
    for kind in sorted(a):
        check(f"{kind}: the box's own", len({a[kind], b[kind], z[kind], host[kind]}) == 4 and
              a[kind] == namespaces(one.init)[kind], (a[kind], b[kind], z[kind], host[kind]))
    check("the zygote has no capability either", "CapEff:\t0000000000000000" in proc(zygote.pid, "status"))
    if os.getuid() == 0:
        uids = {os.stat(f"/proc/{p}/stat").st_uid if p != zygote.pid else int(proc(p, "status").split("Uid:")[1].split()[0])
                for p in (one.base, two.base, zygote.pid)}
        check("for root: three users, none of them root", len(uids) == 3 and 0 not in uids, uids)


@case
def test_reach():
    found = one.value("""
import ctypes, os
me = os.getpid()
mine = {int(p) for p in os.listdir("/proc") if p.isdigit()}
def attempt(call, *args):
    try:
        return repr(call(*args))[:80]
    except OSError as e:
        return e.errno
foreign = []
for pid in [*range(1, 5000), %d, %d, %d, %d, *range(4190000, 4194304)]:
    if pid in mine:
        continue
    try:
        os.kill(pid, 0)
        foreign.append(pid)
    except ProcessLookupError:
        pass
    except PermissionError:
        foreign.append(pid)
libc = ctypes.CDLL(None, use_errno=True)
def parent(pid):
    try:
        return int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
    except OSError:
        return None
def trace(pid):
    r = libc.ptrace(16, pid, None, None)
    return ctypes.get_errno() if r < 0 else "attached"
print(json.dumps({
    "foreign": foreign,
    "first": attempt(os.kill, 1, 0),
    "memory of the first": attempt(open, "/proc/1/mem", "rb"),
    "root of the first": attempt(os.listdir, "/proc/1/root/"),
    "trace": {pid: trace(pid) for pid in sorted(mine - {me})},
    "group": [os.getpgid(0) in mine, os.getsid(0) in mine],
    "orphans": [p for p in mine if parent(p) == 0],
    "namespace": attempt(os.open, "/proc/1/ns/pid", os.O_RDONLY),
    "unshare": (libc.unshare(0x10000000), ctypes.get_errno()),
}))
""" % (os.getpid(), zygote.pid, zygote.keeper, two.base))
    same("it can name no process but its own", found["foreign"], [])
    check("what it signals stays with it: its first process is out of its scope", found["first"] == 1, found["first"])
    check("the first process's memory is closed to it", found["memory of the first"] == 13, found)
    check("and so is its root", found["root of the first"] == 13, found)
    check("nothing can be traced", set(found["trace"].values()) == {1}, found["trace"])
    check("its session and its group are its own", found["group"] == [True, True], found["group"])
    check("it and the fork are the processes whose parents are outside", len(found["orphans"]) == 2, found)
    check("no namespace can be entered or made", found["namespace"] == 13 and found["unshare"] == [-1, 1], found)
    blocked = one.run("import ctypes; ctypes.CDLL(None).unshare(0x10000000)")["blocked"]
    check("and what was refused is reported", any("unshare" in json.dumps(b) for b in blocked), blocked)


@case
def test_memory():
    before = proc(zygote.pid, "stat")
    check("the zygote was not touched", one.run("""
import numpy, sys
numpy.poison = [0] * 100000
sys.modules["poison"] = numpy
import builtins; builtins.print_ = 1
for name in dir(numpy)[:200]: setattr(numpy, "x_" + name, name)
""")["outcome"] == "ok")
    third = Box()
    same("what one box writes, no other has", third.value(
        "import numpy, sys, builtins; print(json.dumps([hasattr(numpy, 'poison'), 'poison' in sys.modules, "
        "hasattr(builtins, 'print_'), hasattr(numpy, 'x_abs')]))"), [False] * 4)
    if before:
        shared = [line for line in proc(zygote.pid, "maps").splitlines() if line.split()[1][1] == "w" and line.split()[1][3] == "s"]
        same("the zygote shares no memory that can be written", shared, [])
    session("rm", third.name)


@case
def test_chance():
    code = """
import hashlib, multiprocessing, numpy, os, random, secrets, ssl, tempfile, uuid
print(json.dumps([random.random(), numpy.random.rand(), random.SystemRandom().random(), secrets.token_hex(8), str(uuid.uuid4()),
                  ssl.RAND_bytes(8).hex(), os.urandom(8).hex(), multiprocessing.current_process().authkey.hex(),
                  numpy.random.default_rng().random(), tempfile.mktemp()]))
"""
    a, b = one.value(code), two.value(code)
    check("nothing that chance decides is the same in two boxes", not set(map(str, a)) & set(map(str, b)), (a, b))
    again = one.value(code)
    check("nor twice in one", not set(map(str, a[:7])) & set(map(str, again[:7])), (a, again))


@case
def test_ordinary():
    o = one.run("""
import asyncio, numpy, subprocess, sys, threading
a = numpy.ones((400, 400)); assert (a @ a)[0, 0] == 400
t = threading.Thread(target=lambda: print("thread")); t.start(); t.join()
print(subprocess.run([sys.executable, "-c", "print(1 + 1)"], capture_output=True, text=True).stdout, end="")
print(subprocess.run("echo $USER; exit 3", shell=True).returncode)
await asyncio.sleep(0)
""")
    check("what works in any session works", o["outcome"] == "ok" and printed(o).split() == ["thread", "2", "agent", "3"], o)
    check("its box has no driver to start", printed(one.run(DRIVERS)) == "[]\n", one.run(DRIVERS))
    check("state stays from one to the next", printed(one.run("print(a.sum())")) == "160000.0\n")
    one.run("b = 1")
    session("undo", one.name)
    check("and can be taken back", printed(one.run("print('b' in globals())")) == "False\n")
    p = start("exec", one.name, "-c", "while True: pass")
    until(lambda: show(one.name)["session"]["state"] == "busy")
    time.sleep(0.2)
    session("interrupt", one.name)
    p.communicate(timeout=30)
    check("a loop is interrupted, and the state is kept", printed(one.run("print(a.sum())")) == "160000.0\n")


@case
def test_limits():
    box = Box()
    o = box.run("x = []\nwhile True: x.append(bytearray(1 << 20))")
    check("memory is limited, and what ran is told so", o["outcome"] in ("memory", "error") and
          (o["outcome"] == "memory" or "MemoryError" in json.dumps(o)), o)
    session("rm", box.name)
    box = Box()
    o = box.run("""
import os, time
made = 0
try:
    while made < 100:
        if os.fork() == 0:
            time.sleep(60); os._exit(0)
        made += 1
except OSError as e:
    print(made, e.errno)
""")
    out = printed(o).split()
    check("so are processes", out and 10 < int(out[0]) <= 40 and out[1] == "11", o)
    check("all of them end with the box", session("rm", box.name).returncode == 0 and box.ends(), box.tasks)


@case
def test_modules():
    end()
    flags = ["--import", "numpy,nosuchmodule"]
    r = pool("start", "-n", "1", *flags)
    check("a module that is not there does no harm", r.returncode == 0, r.stderr)
    box = Box(*flags)
    check("the box is a fork all the same", "--serve" in proc(box.base, "cmdline"))
    o = box.run("print(1)")
    check("whoever uses it is told", printed(o) == "1\n" and "nosuchmodule" in json.dumps(o["events"]), o)
    session("rm", box.name)
    pool("stop", "--all")
    r = pool("start", "-n", "1", "--import", "numpy", "--env", "OPENBLAS_NUM_THREADS=2")
    box = Box("--import", "numpy", "--env", "OPENBLAS_NUM_THREADS=2")
    check("one that starts threads is imported in the box", r.returncode == 0 and printed(box.run(
        "import numpy; a = numpy.ones((300, 300)); print((a @ a)[0, 0])")) == "300.0\n", r.stderr)
    session("rm", box.name)
    pool("stop", "--all")


FILL = """
import ctypes, sys
add_key, n = 248 if sys.maxsize > 1 << 32 and "x86_64" in __import__("os").uname().machine else 217, 0
while ctypes.CDLL(None, use_errno=True).syscall(add_key, b"user", b"pale-%d" % n, b"x", 1, -2) >= 0:
    n += 1
print(n, flush=True)
sys.stdin.read()
"""


@case
def test_keyrings():
    """An ordinary user may have 200 keyrings: the boxes of a pool do without when that is not enough."""
    if os.getuid():
        print("# not root: another user's keys cannot be used up")
        return
    end()
    place, uid = os.path.join(tmp, "other"), 64987  # whose keys no other test needs
    os.mkdir(place)
    os.chown(place, uid, uid)
    as_other = {"env": env | {"HOME": place, "PALE_STATE_DIR": f"{place}/state"}, "user": uid, "group": uid,
                "extra_groups": [], "text": True, "cwd": "/"}

    def run(*command):
        return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=120, **as_other)

    r = run(pale, "pool", "start", "-n", "1")
    if r.returncode and "namespace" in r.stderr:
        print("# an ordinary user cannot make boxes here")
        return
    filler = subprocess.Popen([sys.executable, "-c", FILL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **as_other)
    try:
        n = int(filler.stdout.readline() or 0)
        if not n:
            print("# there are no keys here")
            return
        # As after a login: without a keyring of its own a process gets its first one in any case.
        r = run(sys.executable, "-c", "import ctypes, os, sys; ctypes.CDLL(None).syscall(%d, 1, None); os.execv(sys.argv[1], "
                "sys.argv[1:])" % (250 if "x86_64" in os.uname().machine else 219), pale, "run", "--", "true")
        check("a box that needs a keyring of its own is refused", r.returncode == 125 and "maxkeys" in r.stderr, r.stderr)
        names = [run(pale, "session", "new").stdout.strip() for _ in range(3)]
        out = [run(pale, "session", "exec", name, "-c", "print(6 * 7, open('/proc/self/status').read().count('Seccomp:\\t2'))").stdout
               for name in names]
        check("those of a pool are made, and work", len(set(names)) == 3 and out == ["42 1\n"] * 3, (names, out))
        r = run(pale, "session", "exec", names[-1], "-c",
                "import ctypes; print(ctypes.CDLL(None, use_errno=True).syscall(250, 0, -3, 0), ctypes.get_errno())")
        check("in which nobody can speak of keyrings", r.stdout == "-1 38\n" or "x86_64" not in os.uname().machine, r.stdout + r.stderr)
    finally:
        filler.communicate()
        run(pale, "pool", "stop", "--all")
        run(pale, "session", "rm", "--all")


def fresh(n=2):
    """A pool with its zygote, and a box of it that somebody has."""
    end()
    pool("start", "-n", str(n), *FLAGS)
    return Zygote(), Box()


@case
def test_fork_killed():
    z, box = fresh()
    os.kill(box.base, signal.SIGKILL)
    check("the fork killed: its box ends, whole", box.ends(), box.tasks)
    check("and no other", Box().works())


@case
def test_first_process_killed():
    z, box = fresh()
    other = Box()
    os.kill(box.init, signal.SIGKILL)
    check("a box's first process killed: the box ends, whole", box.ends(), box.tasks)
    check("and no other", other.works())


@case
def test_supervisor_killed():
    z, box = fresh()
    other = Box()
    os.kill(box.supervisor, signal.SIGKILL)
    check("a supervisor killed: its box ends, whole", box.ends(), box.tasks)
    check("and no other", other.works() and alive(z.pid, start_of(z.pid)))


@case
def test_zygote_killed():
    z, box = fresh()
    start = start_of(z.pid)
    os.kill(z.pid, signal.SIGKILL)
    check("the zygote killed: it is gone", until(lambda: not alive(z.pid, start)))
    check("its boxes go on", box.works())
    again = until(lambda: [c for c in children(z.pool) if c != z.keeper and "pale-init" in proc(c, "cmdline")])
    check("the pool makes another", again and ready())
    check("whose boxes work, too", Box().works())
    check("and those before end as ever", session("rm", box.name).returncode == 0 and box.ends(), box.tasks)


@case
def test_keeper_killed():
    z, box = fresh()
    idle = [(p, start_of(p)) for p in tree(z.keeper)]
    os.kill(z.keeper, signal.SIGKILL)
    check("a zygote's first process killed: its boxes end, whole", box.ends(), box.tasks)
    check("and the zygote", until(lambda: not [t for t in idle if alive(*t)], 5), idle)
    check("the pool goes on with another", ready())
    check("whose boxes work", Box().works())


@case
def test_pool_killed():
    z, box = fresh()
    ready()
    idle = [c for c in children(z.pool) if c not in (z.keeper, box.supervisor)]
    held = [(p, start_of(p)) for c in idle for p in tree(c)]
    mine, keeper = (z.pid, start_of(z.pid)), (z.keeper, start_of(z.keeper))
    os.kill(z.pool, signal.SIGKILL)
    check("the pool killed: boxes that nobody has end", held and until(lambda: not [t for t in held if alive(*t)], 10), held)
    check("the zygote ends with it", until(lambda: not alive(*mine), 10))
    check("boxes that somebody has go on", box.works() and alive(*keeper))
    check("until they are ended", session("rm", box.name).returncode == 0 and box.ends(), box.tasks)
    check("and then nothing is left", until(lambda: not alive(*keeper), 10))


@case
def test_stopped():
    z, box = fresh()
    mine = [(p, start_of(p)) for p in (z.pool, z.pid)]
    keeper = z.keeper, start_of(z.keeper)
    pool("stop", "--all")
    check("a pool that is stopped ends with its zygote", until(lambda: not [t for t in mine if alive(*t)], 10))
    check("not with the box that somebody has", box.works())
    session("rm", box.name)
    check("with which the last of it ends", until(lambda: not alive(*keeper), 10) and box.ends())


done()
