#!/usr/bin/python3
"""Boxes are made and destroyed, again and again, and what the machine has of each kind stays the same: mounts,
processes, control groups, namespaces, descriptors, files. PALE_CYCLES of each kind, here few; a thousand take minutes.

usage: test_cycles.py PALE DIRECTORY-OF-PROGRAMS PALE-BOX
"""
from faults import *

CYCLES = int(os.environ.get("PALE_CYCLES", "6"))
env["PALE_BOX_PROGRAM"] = os.path.abspath(sys.argv[3])


def namespaces():
    """How many there are of each kind in the kernel, whoever holds them: other boxes of this machine come and go."""
    try:
        with open("/proc/slabinfo") as f:
            return {w[0]: int(w[1]) for w in map(str.split, f) if w[0] in ("net_namespace", "pid_namespace", "user_namespace")}
    except OSError:  # root's to read, and not of every kernel
        return {}


def files():
    """What a run may leave outside its log."""
    run = "/run/pale" if root else os.path.join(state, "run")
    runs = set(os.listdir(os.path.join(state, "runs")))
    found = [os.path.join(run, name) for name in (os.listdir(run) if os.path.isdir(run) else []) if name in runs]
    # A run's entry in active/ becomes its seal; of what it needed meanwhile there is nothing.
    for top, dirs, names in os.walk(state):
        found += [os.path.join(top, name) for name in dirs + names if name in ("door", "control") or name.endswith(".new")]
    return found


def descriptors(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


def do(*args):
    p = subprocess.run([pale, *args], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    if p.returncode:
        raise Exception(f"{args}: {p.returncode} {p.stderr}")
    return p.stdout


def cycles(what, one):
    one(0)
    spaces = namespaces()
    for i in range(1, CYCLES + 1):
        one(i)
    check(f"{what}: {CYCLES} times, and no process is left", not wait_for_none(ours), ours())
    if CYCLES >= 100:
        grown = wait_for_none(lambda: {k: (v, spaces[k]) for k, v in namespaces().items() if v > spaces[k] + CYCLES / 2})
        check(f"{what}: the kernel has no more namespaces than before", not grown, grown)
    check(f"{what}: no file is left", not files(), files()[:5])
    nothing_left(what)


@case
def test_runs():
    work = os.path.join(place, "work")
    os.mkdir(work)
    cycles("runs", lambda i: do("run", "--overlay", work, "--", "true"))
    cycles("runs with a network", lambda i: do("run", "--allow", "example.com", "--", "true"))


@case
def test_sessions():
    def one(i):
        do("session", "new", "--name", f"cycle-{i}")
        do("session", "exec", f"cycle-{i}", "-c", "1")
        do("session", "rm", f"cycle-{i}")
    cycles("sessions", one)


@case
def test_claims():
    """One pool for all of them: it must not grow, either."""
    do("pool", "start", "-n", "1", "--import", "json")
    pool = json.loads(do("pool", "ls", "--json"))[0]["pid"]
    have = []

    def one(i):
        do("session", "new", "--name", f"claim-{i}", "--import", "json")
        do("session", "rm", f"claim-{i}")
        have.append(descriptors(pool))
    one(0)
    for i in range(1, CYCLES + 1):
        one(i)
    # Boxes that are being made are a few descriptors; a leak is one more each time.
    check(f"claims of a pool: {CYCLES} times, and it holds no more descriptors", have[-1] <= have[0] + min(CYCLES, 12) - 1, have)
    do("pool", "stop", "--all")
    check("claims of a pool: no process is left", not wait_for_none(ours), ours())
    check("claims of a pool: no file is left", not files(), files()[:5])
    nothing_left("claims of a pool")


done()
