#!/usr/bin/python3
"""A session is frozen, stays so, is let go on, or dies frozen: by its owner, with its supervisor, and by whoever
comes after."""
from sessions import *

BUSY = "import threading, time\nn = 0\ndef work():\n    global n\n    while True: n += 1\nthreading.Thread(target=work, daemon=True).start()"



def freezer(s):
    for d in cgroups(s.id):
        for name, want in (("freezer.state", "FROZEN"), ("cgroup.events", "frozen 1")):
            p = os.path.join(d, name)
            if os.path.exists(p) and ("freeze" in d or name == "cgroup.events"):
                return lambda: want in open(p).read()
    return None


def processes(s):
    return [(p, start_of(p)) for p in [s.pid] + descendants(s.pid)]


@case
def test_stands_still():
    s = Session()
    s.run(BUSY)
    time.sleep(0.1)
    begun = time.monotonic()
    check("it is frozen", s("box.freeze") == {"frozen": True})
    took = time.monotonic() - begun
    print(f"# frozen after {took * 1e6:.0f} us as the client sees it")
    stands = freezer(s)
    if stands:
        check("its control group says so", stands())
    else:
        time.sleep(0.05)  # by signals, of which nobody hears
    pids = [p for p, _ in processes(s)]
    before = sum(map(cpu_of, pids))
    time.sleep(0.5)
    check("it uses no processor", sum(map(cpu_of, pids)) == before)
    check("and says so", s("session.show")["state"] == "frozen")
    check("freezing it once more changes nothing", s("box.freeze") == {"frozen": True})
    d = Door(s.id)
    d.send("session.exec", code="print('after')", wait_ms=30000)
    check("an execution waits", within(5, lambda: s("session.show")["queued"] == 1) and s("session.output")["state"] == "queued")
    for command, arguments in (("session.complete", {"code": "a"}), ("session.inspect", {"code": "a"}), ("session.restart", {})):
        e = s.refused(command, **arguments)
        check(f"{command} is refused", e and e.code == "conflict" and "frozen" in e.message, e)
    check("its use can be asked for", s("info")["usage"]["cpu_ms"] >= 0)
    begun = time.monotonic()
    check("it goes on", s("box.thaw") == {"frozen": False})
    print(f"# thawed after {(time.monotonic() - begun) * 1e6:.0f} us as the client sees it")
    answer = d.receive()
    check("and what waited is executed", answer["result"]["outcome"] == "ok", answer)
    events = [e["event"] for e in s.log()]
    check("both are in the log", events.count("session.frozen") == 1 and events.count("session.thawed") == 1, events)
    for _ in range(50):
        s("box.freeze")
        s("box.thaw")
    check("a hundred changes later it works", s.run("print(6 * 7)")["out"] == "42\n")
    s.end()


@case
def test_clocks():
    s = Session(session={"idle": "2s"})
    s.send("session.exec", code="import time; time.sleep(20)", timeout_ms=1000, wait_ms=30000)
    d = Door(s.id)
    time.sleep(0.3)
    check("what runs is frozen", d("box.freeze") == {"frozen": True})
    e = d.refused("session.interrupt")
    check("and cannot be interrupted", e and e.code == "conflict" and "thaw" in e.message, e)
    time.sleep(2)
    check("its time-out does not pass", d("session.output")["state"] == "running")
    d("box.thaw")
    begun = time.monotonic()
    result = s.receive()["result"]
    check("then the rest of it does", result["outcome"] == "timeout" and 0.3 < time.monotonic() - begun < 5, result)
    check("and the time of the execution is what it had", 900 < result["wall_ms"] < 2500, result)
    d("box.freeze")
    time.sleep(3)
    check("idle time does not pass either", d("session.show")["state"] == "frozen")
    d("box.thaw")
    check("afterwards it does", within(8, lambda: not os.path.exists(os.path.join(state, "active", s.id))))
    s = Session(session={"lifetime": "2s"})
    s("box.freeze")
    check("its lifetime passes", within(8, lambda: not os.path.exists(os.path.join(state, "active", s.id))))
    check("and nothing of it is left", within(10, lambda: cgroups(s.id) == []), cgroups(s.id))


@case
def test_dies_frozen():
    for what in ("box.destroy", "its first process killed", "busy"):
        s = Session()
        s.run("import subprocess; p = [subprocess.Popen(['sleep', '300']) for _ in range(20)]")
        if what == "busy":
            s.run(BUSY)
        s("box.freeze")
        left = processes(s)
        if what == "its first process killed":
            os.kill(s.pid, signal.SIGKILL)
            # A frozen group of version 1 lets nobody go: its owner has to.
            if any(map(lambda d: "/freezer/" in d, cgroups(s.id))):
                s("box.thaw")
        else:
            s("box.destroy")
        check(f"{what}: a frozen box ends", within(10, lambda: not any(start_of(p) == t for p, t in left)), left)
        check(f"{what}: its log ends", within(10, lambda: s.log()[-1]["event"] == "box.end"))
        check(f"{what}: its groups are gone", within(10, lambda: cgroups(s.id) == []), cgroups(s.id))


@case
def test_supervisor_killed():
    """SIGKILL for the supervisor of a frozen box, with and without what waits for its end."""
    for keeper in (True, False):
        s = Session()
        s.run("import subprocess; p = subprocess.Popen(['sleep', '300'])")
        s("box.freeze")
        left = processes(s)
        keepers = lambda: [p for p in descendants(s.supervisor) if open(f"/proc/{p}/comm").read() == "pale-keeper\n"]
        v1 = any(map(lambda d: "/freezer/" in d, cgroups(s.id)))
        kept = within(2 if v1 else 0.1, keepers)
        check("a keeper is there where a frozen box would stay", bool(kept) == v1, kept)
        if not keeper:
            os.kill(s.supervisor, signal.SIGSTOP)
            for p in kept:
                os.kill(p, signal.SIGKILL)
        os.kill(s.supervisor, signal.SIGKILL)
        gone = lambda: not any(start_of(p) == t for p, t in left)
        if keeper or not v1:
            check("the supervisor killed: its frozen box dies with it", within(10, gone), left)
        else:
            time.sleep(0.3)
            check("the keeper killed too: the box stands (or this test tests nothing)", not gone())
        p = subprocess.run([pale, "run", "--", "true"], env=env, capture_output=True, check=False)
        check("the next command works", p.returncode == 0, p.stderr)
        check("nothing of the box is left", within(10, gone), left)
        check("nor of its groups", within(10, lambda: cgroups(s.id) == []), cgroups(s.id))
        check("and its log says that it was lost", s.log()[-1].get("outcome") == "supervisor lost", s.log()[-1])
        check("nothing waits for it any more", not any(start_of(p) for p in kept))
        s.close()


@case
def test_what_stood_stays():
    """A program's own SIGSTOP is not undone by the thaw, and a shell does not see its children stopped."""
    s = Session()
    s.run("""import subprocess, os, signal, time
p = subprocess.Popen(['sh', '-c', 'while :; do :; done'])
q = subprocess.Popen(['sh', '-c', 'for i in 1 2 3 4 5 6 7 8; do sleep 0.1; done; echo end of it'], stdout=subprocess.PIPE)
os.kill(p.pid, signal.SIGSTOP)
time.sleep(0.1)
def state(): return open(f'/proc/{p.pid}/stat').read().rsplit(')')[1].split()[0]
def group(): return os.waitpid(p.pid, os.WUNTRACED | os.WNOHANG)""")
    check("stopped by its parent", s.run("print(state())")["out"] == "T\n")
    s("box.freeze")
    time.sleep(0.2)
    s("box.thaw")
    check("it is still stopped afterwards", s.run("print(state())")["out"] == "T\n")
    s.run("os.kill(p.pid, signal.SIGCONT); time.sleep(0.05)")
    check("and goes on when its parent says so", s.run("print(state() in 'RS')")["out"] == "True\n")
    check("the other was not disturbed", s.run("print(q.communicate(timeout=10)[0])")["out"] == "b'end of it\\n'\n")
    s.end()


done()
