#!/usr/bin/python3
"""Everything that the kernel has a fixed number of, or memory for, taken by one box with 16 processes: it gets
no more than its share, the host and a neighbour box still get theirs, and nothing stays."""
import re
import ctypes
import pty

from attacked import *

libc = ctypes.CDLL(None, use_errno=True)
MIB = 1 << 20
MEMORY = 128
# What is counted, the most that a box may get, and what to ask for outside (if anything) to see that more can be got.
COUNTED = [("pty", 32, 64), ("inotify", 16, 32), ("watch", 16384, 0), ("timer", 1200, 3000), ("signal", 1200, 3000),
           ("zombie", 128, 300), ("inode", 5000, 0), ("sparse", 1 << 62, 0), ("depth", 5000, 0),
           ("queue", 256, 0), ("timerfd", 1 << 62, 0), ("epoll", 1 << 62, 0), ("lock", 1 << 62, 0)]
# MiB, or KiB of kernel memory: the box is ended, or has got no more than its limit.
MEMORIES = [("memfd", MIB), ("sent_memfd", MIB), ("shm", MIB), ("tmpfs", MIB), ("locked", MIB), ("message", 1024),
            ("pipe", 1024), ("unix", 1024), ("tcp", 1024), ("udp", 1024), ("semaphore", 64), ("mapping", 64)]
# Whether a control group counts the memory of a box here.
grouped = re.search(r"by +cgroup v\d.* memory", subprocess.run([pale, "explain"], env=env, capture_output=True,
                                                              text=True).stdout) is not None


def host_is_well():
    """The caller's own share of what was taken."""
    fds, problems = [], []
    try:
        fds += list(pty.openpty())
    except OSError as e:
        problems.append(f"pty: {e}")
    for name, got in (("inotify", libc.inotify_init()), ("eventfd", libc.eventfd(0, 0)),
                      ("timerfd", libc.timerfd_create(1, 0)), ("socket", libc.socket(2, 1, 0))):
        fds.append(got)
        if got < 0:
            problems.append(f"{name}: {os.strerror(ctypes.get_errno())}")
    for fd in fds:
        if fd >= 0:
            os.close(fd)
    begun = time.monotonic()
    subprocess.run(["/bin/true"], check=False)
    if time.monotonic() - begun > 1:
        problems.append("slow")
    return problems


def hold(what, *flags, most=200000):
    """A box that takes and holds, what a neighbour and the host see meanwhile, and its result."""
    program = os.path.join(programs, "bombs/take_all")
    p = subprocess.Popen([pale, "run", "--json", "--timeout", "12s", "--memory", f"{MEMORY}MiB", "--set",
                          "limits.inodes=5000" if what != "watch" else "limits.inodes=60000", *flags, "--ro", program, "--",
                          program, what, "2", str(most)],
                         env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(1.2)
    problems = host_is_well()
    n = subprocess.run([pale, "run", "-t", "--timeout", "10s", "--", PYTHON, "-c",
                        "import ctypes, os; ctypes.CDLL(None).inotify_init() >= 0 and os.openpty() and print('well')"],
                       env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    if b"well" not in n.stdout:
        problems.append(f"a neighbour: {n.returncode} {n.stdout} {n.stderr}")
    out, err = p.communicate(timeout=60)
    r = json.loads(out) if out.startswith(b"{") else {"outcome": err.decode(), "stdout": ""}
    text = r["stdout"].strip()
    return r, int(text) if text.isdigit() else None, problems


@case
def test_counted():
    for what, most, free in COUNTED:
        r, got, problems = hold(what)
        check(f"{what}: a box gets its share: {got}", r["outcome"] == "exit" and got is not None and got <= most or
              r["outcome"] == "memory" or r["outcome"] == "wall time" and got is None and most == 1 << 62, r)
        check(f"{what}: the host and a neighbour box get theirs", not problems, "\n".join(problems))
        if free:
            o = outside("bombs/take_all", what, "1", str(free), cwd=place, env={**env, "TMPDIR": place})
            text = o.stdout.strip()
            check(f"{what}: outside there is more", text.isdigit() and int(text) > most, o)


@case
def test_memory():
    for what, unit in MEMORIES:
        if what in ("message", "semaphore", "pipe", "unix", "tcp", "udp", "mapping") and not grouped:
            skip(f"{what}: no more than the limit", "without a control group kernel memory and detached segments are not counted",
                 "cgroup")
            continue
        # Never so much that a fault here takes the machine down.
        r, got, problems = hold(what, "--disk", "64MiB", most=3000000 if unit == 64 else (1 << 30) // unit)
        mib = None if got is None else got * unit >> 20
        check(f"{what}: no more than the box's memory ({r['outcome']}, {mib} MiB)",
              r["outcome"] == "memory" or got is not None and mib <= MEMORY, r)
        check(f"{what}: the host and a neighbour box are well", not problems, "\n".join(problems))


@case
def test_nothing_stays():
    check("no control group stays", not cgroups(), cgroups())
    check("no run is left open", not os.listdir(os.path.join(state, "active")))


done()
