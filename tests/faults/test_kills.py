#!/usr/bin/python3
"""SIGKILL for any process of Pale's at any moment: runs with a network and published ports, sessions, pools with
their zygotes; supervisors, first processes, brokers, keepers, workers, fronts. What belonged to it ends, nothing
hangs, nothing is left, and the next command closes the log.

PALE_KILL_ROUNDS of each kind; here few.
usage: test_kills.py PALE DIRECTORY-OF-PROGRAMS PALE-BOX
"""
import ctypes
import random

from faults import *

ROUNDS = int(os.environ.get("PALE_KILL_ROUNDS", "4"))
env["PALE_BOX_PROGRAM"] = os.path.abspath(sys.argv[3])
env["PALE"] = pale
env["PLACE"] = place
# What loses its parent comes to us, and so is seen.
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
seed = random.randrange(1 << 32)
print(f"# seed {seed}")
random.seed(seed)

RUN = """
"$PALE" run --allow example.com --publish "$PLACE/socket:7000" --overlay "$PLACE/work" -- sh -c 'sleep 0.1; echo x >y'
"""
SESSION = """
"$PALE" session new --name "$NAME" --allow example.com &&
"$PALE" session exec "$NAME" -c 'open("/tmp/x", "w").write("x" * 10000); import time; time.sleep(0.1)' &&
"$PALE" session cp "$NAME:/tmp/x" "$PLACE/out-$NAME" && "$PALE" session cp "$PLACE/out-$NAME" "$NAME:/tmp/y" &&
"$PALE" session freeze "$NAME" && "$PALE" session thaw "$NAME" && "$PALE" session undo "$NAME"
"$PALE" session rm "$NAME"
"""
POOL = """
"$PALE" pool start -n 2 --import json &&
"$PALE" session new --name "$NAME" --import json && "$PALE" session exec "$NAME" -c 'json.dumps(1)'
"$PALE" session rm "$NAME"; "$PALE" pool stop --all
"""


def reap(but=None):
    for pid in children_of(os.getpid()):
        if pid != but and start_of(pid) is None:
            try:
                os.waitpid(pid, os.WNOHANG)
            except OSError:
                pass


def mine(but=None):
    reap(but)
    return [p for p in children_of(os.getpid()) if p != but and start_of(p)]


def name_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            words = f.read().split(b"\0")
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as f:
            return f.read().strip() + " " + b" ".join(words[:3]).decode(errors="replace")[-60:]
    except OSError:
        return "?"


def one(script, number, when):
    """Kills something when that much time has passed; what was wrong, and what was killed."""
    begun = time.monotonic()
    # A session of its own: the shell that speaks for the user is none of Pale's processes.
    p = subprocess.Popen(["sh", "-c", script], env={**env, "NAME": f"kill-{number}"}, stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    victim = None
    while when is not None and time.monotonic() < begun + when:
        time.sleep(0.002)
    if when is not None:
        there = mine(p.pid)
        if there:
            pid = random.choice(there)
            victim = name_of(pid)
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                victim = None
    while p.poll() is None and time.monotonic() < begun + TIMEOUT:
        reap(p.pid)
        time.sleep(0.01)
    took = time.monotonic() - begun
    wrong = []
    if p.poll() is None:
        wrong.append(f"hangs: {[name_of(c) for c in mine()]}")
        p.kill()
    subprocess.run([pale, "session", "rm", "--all"], env=env, capture_output=True, timeout=TIMEOUT, check=False)
    subprocess.run([pale, "pool", "stop", "--all"], env=env, capture_output=True, timeout=TIMEOUT, check=False)
    left = wait_for_none(mine)
    if left:
        wrong.append(f"left: {[name_of(c) for c in left]}")
        for pid in left:
            os.kill(pid, signal.SIGKILL)
    return wrong, victim, took


def rounds(what, script):
    wrong, _, whole = one(script, f"{what}-0", None)
    check(f"{what}: when nothing is killed, nothing is left", not wrong, wrong)
    found, victims = [], {}
    for i in range(1, ROUNDS + 1):
        when = random.uniform(0, whole)
        wrong, victim, _ = one(script, f"{what}-{i}", when)
        if victim:
            victims[victim.split()[0]] = victims.get(victim.split()[0], 0) + 1
        found += [f"round {i} after {when * 1000:.0f} ms, {victim}: {w}" for w in wrong]
    check(f"{what}: {sum(victims.values())} killed ({', '.join(f'{n} {v}' for v, n in sorted(victims.items()))}): all of it ends",
          not found and victims, "\n".join(found))


@case
def test_kills():
    os.mkdir(os.path.join(place, "work"))
    for what, script in (("run", RUN), ("session", SESSION), ("pool", POOL)):
        rounds(what, script)
        check(f"{what}: no socket is left", not os.path.exists(os.path.join(place, "socket")))
        nothing_left(what)


done()
