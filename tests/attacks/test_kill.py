#!/usr/bin/python3
"""The supervisor is killed at any moment, hundreds of times: nothing of its box survives, its control groups
go, and the next command closes its log."""
import random
import threading

from attacked import *

ROUNDS = int(os.environ.get("PALE_KILL_ROUNDS", "200"))
COMMAND = ["--timeout", "60s", "--overlay", os.path.join(place, "work"), "--", "sh", "-c",
           "setsid sleep 300 & (trap '' TERM HUP; sleep 301) & echo x >new; while :; do :; done"]
os.mkdir(os.path.join(place, "work"))


def start():
    return subprocess.Popen([pale, "run", *COMMAND], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, start_new_session=True)


def gone_within(tasks, seconds):
    until = time.monotonic() + seconds
    left = [t for t in tasks if alive(*t)]
    while left and time.monotonic() < until:
        time.sleep(0.005)
        left = [t for t in left if alive(*t)]
    return left


@case
def test_random_moments():
    mounts = len(open("/proc/self/mountinfo").readlines())
    survivors, seen, late, whole_life = [], 0, 0, 0.0
    # How long it takes to get up, so that the moments are spread over all of it, and over its life.
    for _ in range(3):
        p, begun = start(), time.monotonic()
        while len(children_of(p.pid)) < 4 and time.monotonic() < begun + 10:
            time.sleep(0.001)
        whole_life = max(whole_life, time.monotonic() - begun)
        p.kill()
        p.wait()
    for i in range(ROUNDS):
        p = start()
        time.sleep(random.uniform(0, whole_life * 1.2))
        tasks = [(c, start_of(c)) for c in children_of(p.pid)]
        seen += bool(tasks)
        os.kill(p.pid, signal.SIGKILL)
        # What was made between the look and the kill is found by what it runs as, below.
        p.wait()
        tasks = [t for t in tasks if t[1]]
        if gone_within(tasks, 0.1):
            late += 1
            survivors += gone_within(tasks, 2)
    check(f"{ROUNDS} supervisors killed within {whole_life * 1200:.0f} ms of their start: nothing survives", not survivors, survivors)
    check("in nearly all of them there was something to survive", seen > ROUNDS / 4, seen)
    check("all was gone within 100 ms (but for a busy machine)", late <= ROUNDS / 20, f"{late} late")
    time.sleep(0.3)
    stray = [c for c in subprocess.run(["pgrep", "-f", "sleep 30[01]"], capture_output=True, text=True).stdout.split()
             if os.stat(f"/proc/{c}").st_uid == (os.geteuid() or os.stat(f"/proc/{c}").st_uid)
             and place in open(f"/proc/{c}/mountinfo").read()]
    check("no process of the boxes is anywhere", not stray, stray)
    # Each round has closed those before it, but for logs that are empty and young: their runs could yet begin.
    logs = glob.glob(os.path.join(state, "runs", "*", "audit.jsonl"))
    for log in logs:
        if os.path.getsize(log) == 0:
            os.utime(log, (1, 1))
    p = subprocess.run([pale, "run", "--", "true"], env=env, capture_output=True)
    check("the next command works", p.returncode == 0, p.stderr)
    left = os.listdir(os.path.join(state, "active"))
    left = [run for run in left if os.path.exists(os.path.join(state, "runs", run, "audit.jsonl"))]
    check("and has closed all runs", not left, left[:5])
    bad, lost = [], 0
    for log in logs:
        with open(log, encoding="utf-8") as f:
            last = json.loads(f.read().splitlines()[-1])
        if last["event"] != "box.end" or last.get("outcome") not in ("supervisor lost", "exit"):
            bad.append((log, last))
        lost += last.get("outcome") == "supervisor lost"
    check("their logs end with supervisor lost", lost > ROUNDS / 20 and not bad, (lost, bad[:3]))
    p = subprocess.run([pale, "audit", "verify", "--all"], env=env, capture_output=True)
    check("and are whole", p.returncode == 0, b"\n".join(l for l in (p.stdout + p.stderr).splitlines() if b" whole " not in l)[-800:])
    check("no control group is left", cgroups() == [], cgroups())
    check("nor a mount", len(open("/proc/self/mountinfo").readlines()) == mounts)


@case
def test_recovery_is_not_fooled():
    """A command that closes lost runs must not touch what lives."""
    p = subprocess.Popen([pale, "run", "--json", "--", "sleep", "2"], env=env, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(0.3)
    for _ in range(5):
        subprocess.run([pale, "run", "--", "true"], env=env, capture_output=True)
        subprocess.run([pale, "audit", "list"], env=env, capture_output=True)
    out = json.loads(p.communicate(timeout=30)[0])
    check("a live run is not closed by others", out["outcome"] == "exit" and out["exit_status"] == 0, out)


@case
def test_signals_in_any_order():
    """Signals a caller sends, to whom it can: the run ends, nothing stays."""
    for order in (["TERM"], ["TERM", "TERM"], ["INT", "HUP"], ["STOP", "CONT", "TERM", "TERM"], ["HUP", "KILL"], ["QUIT"]):
        p = start()
        begun = time.monotonic()
        while len(children_of(p.pid)) < 4 and time.monotonic() < begun + 10:
            time.sleep(0.01)
        tasks = [(c, start_of(c)) for c in children_of(p.pid)]
        for name in order:
            if p.poll() is None:
                os.kill(p.pid, getattr(signal, "SIG" + name))
            time.sleep(0.1)
        try:
            p.wait(timeout=10)
        except subprocess.TimeoutExpired:
            p.kill()
        check(f"after {' '.join(order)} nothing of the box is left", not gone_within([t for t in tasks if t[1]], 2), p.returncode)
    # The box's first process, killed from outside by one who may.
    p = start()
    begun = time.monotonic()
    while len(children_of(p.pid)) < 4 and time.monotonic() < begun + 10:
        time.sleep(0.01)
    tasks = [(c, start_of(c)) for c in children_of(p.pid)]
    os.kill(children_of(p.pid)[0], signal.SIGKILL)
    check("its first process killed from outside: the run ends", p.wait(timeout=10) != 0)
    check("and nothing is left", not gone_within([t for t in tasks if t[1]], 2))


@case
def test_two_at_once():
    """Boxes that start and die beside each other share nothing, and one directory may be under both."""
    work = os.path.join(place, "shared")
    os.mkdir(work)
    with open(os.path.join(work, "file"), "w") as f:
        f.write("host")
    results = []

    def one(n):
        code = f"cat file; echo {n} >file; sleep 0.3; cat file; ls"
        results.append((n, Run("--overlay", work, "--", "sh", "-c", code)))
    threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check("eight boxes over the same directory do not see each other",
          len(results) == 8 and all(r.out == f"host{n}\nfile\n" for n, r in results), [(n, r.out, r.said) for n, r in results])
    with open(os.path.join(work, "file")) as f:
        check("and the directory is as it was", f.read() == "host" and os.listdir(work) == ["file"])


done()
