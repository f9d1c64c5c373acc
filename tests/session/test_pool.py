"""Pools: boxes that are held ready, each taken once, with the policy that was asked for and no other.

usage: test_pool.py PALE PALE-BOX
"""
import atexit
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

pale, box_program = map(os.path.abspath, sys.argv[1:3])
place = os.path.realpath(tempfile.mkdtemp(prefix="pale-pool."))
state = os.path.join(place, "state")
env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": place, "LANG": "C.UTF-8", "PALE_STATE_DIR": state,
       "PALE_BOX_PROGRAM": box_program}
env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
number = failed = 0


def check(what, ok, detail=""):
    global number, failed
    number += 1
    failed += not ok
    print(f"{'ok' if ok else 'not ok'} {number} - {what}")
    if not ok:
        print("\n".join("# " + line[:400] for line in str(detail).splitlines()[:20]))
    sys.stdout.flush()


def run(*args, **kwargs):
    return subprocess.run([pale, *args], env=env, capture_output=True, text=True, timeout=120, **kwargs)


def pools():
    return json.loads(run("pool", "ls", "--json").stdout)


def until(what, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = what()
        if value:
            return value
        time.sleep(0.02)
    return None


class Client:
    """A connection, to a pool at first."""

    def __init__(self, key):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        fd = os.open(os.path.join(state, "pools"), os.O_RDONLY)
        self.sock.connect(f"/proc/self/fd/{fd}/{key}")
        os.close(fd)
        self.file = self.sock.makefile("rb")

    def ask(self, command, **arguments):
        self.sock.sendall(json.dumps({"pale": 1, "command": command, "arguments": arguments}).encode() + b"\n")
        line = self.file.readline()
        return json.loads(line) if line else None

    def exec(self, code):
        answer = self.ask("session.exec", code=code, wait_ms=60000)["result"]
        return answer["result"]["outcome"], "".join(e.get("text", "") for e in answer["events"] if e["type"] == "stdout")

    def end(self):
        self.ask("box.destroy")
        self.close()

    def close(self):
        self.sock.close()
        self.file.close()


def log(run_id):
    with open(os.path.join(state, "runs", run_id, "audit.jsonl")) as f:
        return [json.loads(line) for line in f]


def ended(run_id):
    return until(lambda: [e for e in log(run_id) if e["event"] == "box.end"])


def cleanup():
    run("pool", "stop", "--all")
    for pool_pid in known:
        try:
            os.kill(pool_pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    run("audit", "list")  # closes lost runs
    shutil.rmtree(place, ignore_errors=True)


known = []
atexit.register(cleanup)

r = run("pool", "start", "-n", "2", "--memory", "300MiB")
check("a pool starts, and is ready", r.returncode == 0, r.stderr)
ours = pools()
known += [p["pid"] for p in ours]
check("it is listed, with two boxes", len(ours) == 1 and ours[0]["ready"] == 2 and ours[0]["size"] == 2, ours)
key = ours[0]["key"]
check("its box is of this policy, and on record",
      (lambda e: e[0]["event"] == "box.start" and e[0]["policy"]["limits"]["memory"] == "300MiB")(
          log(sorted(os.listdir(os.path.join(state, "runs")))[0])))
held = sorted(os.listdir(os.path.join(state, "runs")))
r = run("session", "ls")
check("nobody's boxes are not listed as sessions", r.returncode == 0 and r.stdout == "" and "no sessions" in r.stderr,
      r.stdout + r.stderr)
check("nor as JSON", run("session", "ls", "--json").stdout == "")
r = run("session", "show")
check("none is the only session", r.returncode == 125 and "no session runs" in r.stderr, r.stderr)
for ref in ("last", held[0]):
    r = run("session", "exec", ref, "-c", "print('ran')")
    check(f"no code runs in them: {ref}", r.returncode == 125 and "ran" not in r.stdout and "no session" in r.stderr, r.stderr)
r = run("network", "show")
check("they are not the box that is meant", "no session, and no box" in r.stderr, r.stderr)


def at_door(run_id, command, **arguments):
    with socket.socket(socket.AF_UNIX) as s:
        fd = os.open(os.path.join(state, "runs", run_id, "door"), os.O_PATH)
        s.connect(f"/proc/self/fd/{fd}/control")
        os.close(fd)
        s.sendall(json.dumps({"pale": 1, "command": command, "arguments": arguments}).encode() + b"\n")
        return json.loads(s.makefile("rb").readline())


for command, arguments in (("session.exec", {"code": "x = 1", "wait_ms": 10000}), ("files.write", {"path": "/tmp/mark", "text": ""}),
                           ("network.change", {"allow": ["example.com"]}), ("box.freeze", {}), ("session.restart", {})):
    answer = at_door(held[0], command, **arguments)
    check(f"at its door {command} is refused", answer.get("error", {}).get("code") == "state" and "nobody's" in
          answer["error"]["message"], answer)
check("its door says whose it is", at_door(held[0], "info")["result"]["session"]["held"] is True)
r = run("session", "rm", "--all")
check("rm --all leaves them", r.returncode == 0 and pools()[0]["ready"] == 2 and
      not any(e["event"] == "box.end" for i in held for e in log(i)), r.stderr)
r = run("pool", "start", "-n", "2", "--memory", "300MiB")
check("a second one of the same policy is refused", r.returncode == 1 and "runs already" in r.stderr, r.stderr)

a, b = Client(key), Client(key)
first, second = a.ask("pool.claim", name="one"), b.ask("pool.claim")
ids = [x["result"]["id"] for x in (first, second)]
check("two claims give two boxes", len(set(ids)) == 2, ids)
check("the name is its own", first["result"]["name"] == "one" and
      os.readlink(os.path.join(state, "names", "one")) == ids[0], first)
check("the connection is the session's from then on", a.exec("print(6 * 7)") == ("ok", "42\n"))
check("it is listed then", [json.loads(x)["id"] for x in run("session", "ls", "--json").stdout.splitlines()] == sorted(ids))
check("and nobody's no more", a.ask("info")["result"]["session"]["held"] is False)
check("a box is used once: another claim on it is refused", a.ask("pool.claim")["error"]["code"] == "conflict")
check("it was never used before", b.exec("print('x' in globals())") == ("ok", "False\n"))
a.exec("x = 1\nopen('/tmp/mark', 'w').write('a')")
c = Client(key)
third = c.ask("pool.claim")["result"]["id"]
check("when none was left, one came", third not in ids)
check("nothing of one box is in the next",
      c.exec("import os; print('x' in globals(), os.path.exists('/tmp/mark'))") == ("ok", "False False\n"))
check("its namespaces are its own", len({os.readlink(f"/proc/{x.ask('info')['result']['pid']}/ns/{kind}")
                                         for x in (a, b, c) for kind in ("pid", "mnt", "net", "user", "ipc")}) == 15)
check("who took it is on record", [e for e in log(ids[0]) if e["event"] == "session.claimed" and e["name"] == "one"])
check("the whole code is on record", [e for e in log(ids[0]) if e["event"] == "exec.start" and "/tmp/mark" in e["code"]])
check("the first code that is on record is the first that ran: nothing ran while it was held",
      [e["execution"] for e in log(ids[1]) if e["event"] == "exec.start"] == [1])
d = Client(key)
taken = d.ask("pool.claim", name="one")
check("a name that is taken: no box for it", taken["error"]["code"] == "conflict", taken)

for command, want in (("pool.nonsense", "unknown_command"), ("pool.claim", None)):
    e = Client(key)
    answer = e.ask(command)
    check(f"{command}: {want or 'a box'}", (answer.get("error", {}).get("code") if want else answer.get("result")), answer)
    if not want:
        e.end()
    e.close()
e = Client(key)
e.sock.sendall(b"not json\n")
check("what is no request is told so", b"malformed" in e.file.readline())
e = Client(key)
e.sock.sendall(b"x" * 20000)
try:
    answer = e.file.readline()
except ConnectionResetError:
    answer = b""
check("a line that never ends is not waited for", answer == b"", answer)
check("and the pool goes on", until(lambda: pools()[0]["ready"] == 2), pools())

# The policy: another one never gets this pool's boxes.
r = run("pool", "start", "-n", "1", "--memory", "200MiB")
keys = {p["key"] for p in pools()}
known += [p["pid"] for p in pools()]
check("another policy is another pool", r.returncode == 0 and len(keys) == 2, keys)
other = Client((keys - {key}).pop())
other_id = other.ask("pool.claim")["result"]["id"]
check("and its boxes have its policy", log(other_id)[0]["policy"]["limits"]["memory"] == "200MiB")
other.end()
other.close()
for flags, word in ((["--ro", "/etc/hostname"], "files"), (["--overlay", place], "files"),
                    (["--publish", "8080"], "publish"), (["--allow", "example.com", "--secret", "K=env:HOME@example.com"], "secrets")):
    r = run("pool", "start", *flags)
    check(f"{flags[0]}: boxes cannot be made ahead", r.returncode == 2 and "ahead" in r.stderr or "made" in r.stderr or
          "same ports" in r.stderr, r.stderr)

# Its end.
sessions = [a, b, c]
r = run("pool", "stop", key[:8])
check("a pool is stopped by the beginning of its key", r.returncode == 0 and key not in {p["key"] for p in pools()}, r.stderr)
held = [i for i in os.listdir(os.path.join(state, "runs"))
        if not [e for e in log(i) if e["event"] == "session.claimed"] and log(i)[0]["policy"]["limits"]["memory"] == "300MiB"]
check("boxes that nobody has taken end with it", all(ended(i) for i in held), held)
check("sessions that were taken go on", all(x.exec("print(1)") == ("ok", "1\n") for x in sessions))
for x in sessions:
    x.end()
check("until they are ended", all(ended(i) for i in ids + [third]))
check("and the name is free", until(lambda: not os.path.lexists(os.path.join(state, "names", "one"))))

# Killed.
run("pool", "stop", "--all")
run("pool", "start", "-n", "2", "--memory", "301MiB")
pool = pools()[0]
known.append(pool["pid"])
f = Client(pool["key"])
kept = f.ask("pool.claim")["result"]["id"]
mine = until(lambda: pools() and pools()[0]["ready"] == 2)
os.kill(pool["pid"], signal.SIGKILL)
rest = [i for i in os.listdir(os.path.join(state, "runs")) if log(i)[0]["policy"]["limits"]["memory"] == "301MiB" and i != kept]
check("a pool that is killed takes the boxes with it that nobody has", rest and all(ended(i) for i in rest), rest)
check("and no others", f.exec("print(2)") == ("ok", "2\n"))
check("it is not listed any more", pools() == [])
r = run("pool", "start", "-n", "1", "--memory", "301MiB")
check("another one takes its place", r.returncode == 0 and len(pools()) == 1, r.stderr)
known += [p["pid"] for p in pools()]
f.end()
run("pool", "stop", "--all")

# Warm ones.
r = run("pool", "start", "-n", "6", "--memory", "302MiB")
pool = pools()[0]
known.append(pool["pid"])
check("of many boxes the first few are warm", (pool["ready"], pool["warm"]) == (6, 4), pool)
mine = [Client(pool["key"]) for _ in range(6)]
taken = [m.ask("pool.claim")["result"]["id"] for m in mine]
check("all of them work, be they warm or not", [m.exec("print(3)") for m in mine] == [("ok", "3\n")] * 6 and len(set(taken)) == 6)
check("a warm-up counts as no execution, and is not on record", all(
    [e["execution"] for e in log(i) if e["event"] == "exec.start"] == [1] for i in taken))
check("others get warm", until(lambda: pools()[0]["warm"] == 4), pools())
for m in mine:
    m.end()
run("pool", "stop", "--all")

# Lost runs: a pool that makes boxes looks for them, and not for each box.
r = run("pool", "start", "-n", "2", "--memory", "303MiB")
pool = pools()[0]
known.append(pool["pid"])


def supervisor(run_id):
    """The process that holds a run's log."""
    with open(f"/proc/{pool['pid']}/task/{pool['pid']}/children") as f:
        for pid in f.read().split():
            try:
                if any(f"/runs/{run_id}/" in os.readlink(f"/proc/{pid}/fd/{n}") for n in os.listdir(f"/proc/{pid}/fd")):
                    return int(pid)
            except OSError:
                pass
    return None


def lose():
    """The id of a box that was taken, and whose supervisor is dead."""
    c = Client(pool["key"])
    run_id = c.ask("pool.claim")["result"]["id"]
    os.kill(supervisor(run_id), signal.SIGKILL)
    c.close()
    return run_id


def another_box():
    c = Client(pool["key"])
    c.ask("pool.claim")
    c.end()


def closed(run_id):
    return "box.end" in [e["event"] for e in log(run_id)]


def closed_by_pool(run_id):
    another_box()
    return closed(run_id)


lost = lose()
check("a run whose supervisor was killed is closed by the pool's other boxes", until(lambda: closed_by_pool(lost)), log(lost)[-1])
check("and is on record as lost", "box.lost" in [e["event"] for e in log(lost)], log(lost)[-1])
begun, lost = time.monotonic(), lose()
for _ in range(3):
    another_box()
still, took = not closed(lost), time.monotonic() - begun
if took < 0.7:
    check("boxes made within a second of that do not look again", still, log(lost)[-1])
else:
    check(f"boxes made within a second of that do not look again # SKIP they took {took:.1f} s", True)
check("those after it do", until(lambda: closed_by_pool(lost)), log(lost)[-1])
run("pool", "stop", "--all")
# Other kernels' rules and users: a box of a pool is held as one that is made for the occasion.
PROBE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def errno_of(nr, *args):
    ctypes.set_errno(0)
    return nr, libc.syscall(nr, *args) >= 0, ctypes.get_errno()
def seen():
    status = dict(line.split(':\\t', 1) for line in open('/proc/self/status').read().splitlines() if ':\\t' in line)
    yield os.getuid(), os.getgid(), [status[k] for k in ('CapEff', 'CapPrm', 'CapBnd', 'CapAmb', 'NoNewPrivs', 'Seccomp')]
    yield open('/proc/self/uid_map').read().split()[::2], open('/proc/sys/kernel/hostname').read()
    for nr in (101, 135, 165, 250, 272, 298, 310, 321, 323, 425, 434, 435):
        pid = os.fork()
        if not pid:
            calls = {272: (0x10000000,), 101: (0,), 434: (os.getpid(), 0)}
            _, done, why = errno_of(nr, *calls.get(nr, (0, 0, 0, 0, 0)))
            os._exit(0 if done else min(why, 254))
        yield nr, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(list(seen()))
"""
answers = {}
for policy in ("kernel.profile=default", "kernel.profile=strict", "kernel.profile=nested", "user=root"):
    flags = ["--set", policy, "--memory", "303MiB"]
    r = run("pool", "start", "-n", "1", *flags)
    if r.returncode:
        # Refused where such a box cannot be made at all, and for the same reason.
        cold = run("session", "new", *flags)
        check(f"{policy}: no pool where there is no box, and why", cold.returncode != 0 and r.stderr.split(": ", 1)[1] ==
              cold.stderr.split(": ", 1)[1], r.stderr + cold.stderr)
        continue
    known += [p["pid"] for p in pools()]
    r = run("session", "new", "--name", "pooled", "--json", *flags)
    check(f"{policy}: the box is the pool's", pools()[0]["claimed"] == 1, r.stdout + r.stderr)
    run("pool", "stop", "--all")
    r = run("session", "new", "--name", "cold", *flags)
    both = [run("session", "exec", name, "--quiet", "-c", PROBE).stdout for name in ("pooled", "cold")]
    check(f"{policy}: it is held as one that is made for the occasion", both[0] == both[1] and both[0].startswith("[("), "\n".join(both) + r.stderr)
    answers[policy] = both[0]
    run("session", "rm", "pooled", "cold")
check("and each in its own way", len(set(answers.values())) == len(answers) >= 2, answers)
print(f"1..{number}")
sys.exit(failed != 0)
