"""Sessions and warm boxes, beside cold interpreters and other sandboxes, in one run.

    session.py --pale FILE --client FILE [--user NAME] [--monty DIR] [--json] [--quick]

Each row is measured as an unprivileged user (--user) where there is one, else as the caller. `fresh` is from the
request to the result of one piece of code in a box that was never used: from a pool with Pale, by starting it
with the others. --monty names a directory in which @pydantic/monty is installed (npm install @pydantic/monty):
an interpreter of a part of Python, in the process of its caller. What cannot be measured here is said so.
"""
import argparse
import json
import os
import pwd
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

PRINT = "print(1)"
PANDAS = ("import pandas as pd\n"
          "d = pd.DataFrame({'a': range(100), 'b': [x % 7 for x in range(100)]})\n"
          "print(d.groupby('b').a.sum().to_string())")
STUCK = "sum(range(10**13))"  # never looks at signals
GOALS = {
    "fresh python": ("p50 ms", 1.0), "fresh pandas": ("p50 ms", 3.0), "fresh node": ("p50 ms", 5.0),
    "fresh ipykernel": ("p50 ms", 80.0), "exec": ("p50 ms", 0.3), "exec, rollback armed": ("p50 ms", 2.0),
    "interrupt while True": ("p50 ms", 1.0), "rollback after the grace": ("p50 ms", 50.0),
    "fresh python a second": ("per s", -400.0), "fresh pandas a second": ("per s", -150.0),
    "PSS of an idle box, pandas": ("MB", 3.0),
}
parser = argparse.ArgumentParser()
parser.add_argument("--pale", required=True)
parser.add_argument("--client", required=True)
parser.add_argument("--user")
parser.add_argument("--monty")
parser.add_argument("--json", action="store_true")
parser.add_argument("--quick", action="store_true")
options = parser.parse_args()
options.pale, options.client = map(os.path.abspath, (options.pale, options.client))
rounds = 20 if options.quick else 100
scratch = tempfile.mkdtemp(prefix="pale-bench.")
os.chmod(scratch, 0o755)
home = os.path.join(scratch, "home")
os.mkdir(home)
prefix = []
env = {"HOME": home, "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8",
       "PALE_STATE_DIR": os.path.join(home, "state"),
       "PALE_BOX_PROGRAM": os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(options.pale))), "pale-box")}
if options.user:
    entry = pwd.getpwnam(options.user)
    os.chown(home, entry.pw_uid, entry.pw_gid)
    prefix = ["setpriv", f"--reuid={options.user}", f"--regid={options.user}", "--init-groups"]
    env |= {"USER": options.user, "LOGNAME": options.user}
rows = []


def row(name, what, value, note=""):
    rows.append({"name": name, "what": what, "value": value, "note": note})
    print(f"  {name:34} {'' if value is None else f'{value:10.2f}'} {what:8} {note}", file=sys.stderr, flush=True)


def run(*command, **more):
    return subprocess.run([*prefix, *command], env=env, cwd="/", capture_output=True, text=True, timeout=600,
                          stdin=subprocess.DEVNULL, **more)


def client(*arguments):
    r = run(options.client, *map(str, arguments))
    if r.returncode:
        raise RuntimeError(r.stderr.strip()[-200:])
    return json.loads(r.stdout)


def attempt(name, what, function):
    try:
        row(name, what, *function())
    except Exception as e:  # a row that cannot be measured is told, and the others go on
        row(name, what, None, f"not measured: {str(e)[:120]}")


def cold(command, want="1"):
    times = []
    for _ in range(max(5, rounds // 5)):
        begun = time.perf_counter()
        r = run(*command)
        times.append((time.perf_counter() - begun) * 1e3)
        if r.returncode or want not in r.stdout:
            raise RuntimeError((r.stderr or r.stdout).strip()[-160:] or f"status {r.returncode}")
    return statistics.median(times), ""


def with_pool(boxes, sets, function):
    flags = [f for s in sets for f in ("--set", s)]
    r = run(options.pale, "pool", "start", "-n", str(boxes), *flags)
    if r.returncode:
        raise RuntimeError(r.stderr.strip()[-200:])
    try:
        return function()
    finally:
        run(options.pale, "pool", "stop", "--all")


def fresh(code, sets=(), n=None):
    def measured():
        t = client("fresh", n or rounds, code, *sets)
        return t["result"]["p50"] / 1e3, f"p99 {t['result']['p99'] / 1e3:.1f}, the box {t['claim']['p50'] / 1e3:.2f}"
    return with_pool(4, sets, measured)


def rate(code, sets=()):
    return with_pool(16, sets, lambda: (client("rate", 3 if options.quick else 10, 4, code, *sets)["rate"],
                                         "each box used once, two processors"))


def session(mode, *arguments):
    t = client(mode, *arguments)
    key = "exec" if mode == "exec" else "interrupt"
    return t[key]["p50"] / 1e3, f"p99 {t[key]['p99'] / 1e3:.2f}" + (f", by {t['how']}" if "how" in t else "")


def pss(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup") as f:
            total += next(int(line.split()[1]) for line in f if line.startswith("Pss:"))
    return total / 1024


def below(pid):
    found = [pid]
    for p in found:
        for task in os.listdir(f"/proc/{p}/task"):
            with open(f"/proc/{p}/task/{task}/children") as f:
                found += map(int, f.read().split())
    return found


def idle_memory(sets):
    """What one more box takes: the difference between a large pool and a small one, by the boxes between."""
    def measured():
        time.sleep(1)
        return pss(below(json.loads(run(options.pale, "pool", "ls", "--json").stdout)[0]["pid"]))
    few, many = 8, 24
    least, most = with_pool(few, sets, measured), with_pool(many, sets, measured)
    return (most - least) / (many - few), f"one more; a pool of {few} takes {least:.0f} MB, with its interpreter"


def available():
    with open("/proc/meminfo") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("MemAvailable")) / 1024


def live(n):
    return with_pool(16, [], lambda: live_of_pool(n))


def live_of_pool(n):
    before = available()
    held = subprocess.Popen([*prefix, options.client, "live", str(n)], env=env, cwd="/", stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        begun = time.perf_counter()
        ids = [held.stdout.readline().strip() for _ in range(n)]
        if not ids[-1]:
            raise RuntimeError(f"{len([i for i in ids if i])} were started: {held.stderr.read()[-160:]}")
        took = time.perf_counter() - begun
        again = float(held.stdout.readline())
        return (before - available()) / n, f"each; started in {took:.0f} s, one more execution in each: {again:.2f} ms"
    finally:
        held.stdin.close()
        run(options.pale, "session", "rm", "--all")
        held.kill()
        held.wait()


def kernel_cold():
    code = ("import sys,time\nfrom jupyter_client import KernelManager\nt=time.perf_counter()\n"
            "k=KernelManager(kernel_name='python3')\nk.start_kernel()\nc=k.client()\nc.start_channels()\nc.wait_for_ready(60)\n"
            "print((time.perf_counter()-t)*1e3)\nc.stop_channels()\nk.shutdown_kernel(now=True)")
    times = []
    for _ in range(5):
        r = run("/usr/bin/python3", "-c", code)
        if r.returncode:
            raise RuntimeError(r.stderr.strip()[-160:])
        times.append(float(r.stdout.split()[-1]))
    return statistics.median(times), "jupyter_client, to kernel_info"


MONTY = """import {Monty} from '@pydantic/monty'
const times = []
let printed = ''
for (let i = 0; i < 300; i++) {
  const start = process.hrtime.bigint()
  new Monty('print(1)').run({printCallback: (stream, text) => { printed += text }})
  times.push(Number(process.hrtime.bigint() - start) / 1e6)
}
if (printed !== '1\\n'.repeat(300)) throw new Error('it has not printed: ' + printed.slice(0, 20))
console.log(times.sort((a, b) => a - b)[150])
"""


def monty():
    if not options.monty:
        raise RuntimeError("--monty is not given: npm install @pydantic/monty")
    script = os.path.join(options.monty, "pale-bench-monty.mjs")
    with open(script, "w") as f:
        f.write(MONTY)
    try:
        r = run("node", script)
    finally:
        os.unlink(script)
    if r.returncode:
        raise RuntimeError(r.stderr.strip()[-160:])
    return float(r.stdout), "a subset of Python inside the caller's process; no box"


BWRAP = ["bwrap", "--unshare-all", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64",
         "/lib64", "--symlink", "usr/bin", "/bin", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--ro-bind", "/etc/alternatives", "/etc/alternatives"]
PY = ["/usr/bin/python3", "-c"]
try:
    print("times in ms, p50" + (f", as {options.user}" if options.user else ""), file=sys.stderr)
    attempt("fresh python", "p50 ms", lambda: fresh(PRINT))
    attempt("fresh pandas", "p50 ms", lambda: fresh(PANDAS, ["session.imports=pandas", "limits.memory=1GiB"]))
    attempt("fresh node", "p50 ms", lambda: fresh("console.log(1)", ["session.kernel=node", "limits.memory=1GiB"]))
    attempt("fresh ipykernel", "p50 ms", lambda: fresh(PRINT, ["session.kernel=ipython", "limits.memory=1GiB"], 20))
    attempt("fresh python a second", "per s", lambda: rate(PRINT))
    attempt("fresh pandas a second", "per s", lambda: rate(PANDAS, ["session.imports=pandas", "limits.memory=1GiB"]))
    attempt("exec", "p50 ms", lambda: session("exec", rounds * 20, "x = 1", 0))
    attempt("exec, rollback armed", "p50 ms", lambda: session("exec", rounds * 5, "x = 1", 1))
    attempt("exec that writes a file", "p50 ms", lambda: session("exec", rounds * 5, "open('f', 'w').write('x')", 0))
    attempt("the same, rollback armed", "p50 ms", lambda: session("exec", rounds * 5, "open('f', 'w').write('x')", 1))
    attempt("interrupt while True", "p50 ms", lambda: session("interrupt", rounds, "while True: pass", 5000))
    attempt("rollback after the grace", "p50 ms",
            lambda: (lambda t: (t[0] - 50, t[1]))(session("interrupt", max(10, rounds // 5), STUCK, 50, "limits.cpu=1h")))
    attempt("PSS of an idle box, python", "MB", lambda: idle_memory([]))
    attempt("PSS of an idle box, pandas", "MB", lambda: idle_memory(["session.imports=pandas", "limits.memory=1GiB"]))
    if not options.quick:
        attempt("500 live sessions", "MB", lambda: live(500))
    attempt("cold: python3", "p50 ms", lambda: cold([*PY, PRINT]))
    attempt("cold: python3, pandas", "p50 ms", lambda: cold([*PY, PANDAS], "b"))
    attempt("cold: bwrap + python3", "p50 ms", lambda: cold([*BWRAP, *PY, PRINT]))
    attempt("cold: bwrap + python3, pandas", "p50 ms", lambda: cold([*BWRAP, *PY, PANDAS], "b"))
    attempt("cold: pale run python3", "p50 ms", lambda: cold([options.pale, "run", "--", *PY, PRINT]))
    attempt("cold: node", "p50 ms", lambda: cold(["node", "-e", "console.log(1)"]))
    attempt("cold: ipykernel", "p50 ms", kernel_cold)
    attempt("cold: runsc do", "p50 ms",
            lambda: cold(["runsc", "--rootless", "--network=none", "--ignore-cgroups", "do", *PY, PRINT]))
    attempt("monty", "p50 ms", monty)
finally:
    run(options.pale, "pool", "stop", "--all")
    run(options.pale, "audit", "list")
    shutil.rmtree(scratch, ignore_errors=True)

for r in rows:
    goal = GOALS.get(r["name"])
    if goal and r["value"] is not None:
        r["goal"] = abs(goal[1])
        r["met"] = r["value"] >= -goal[1] if goal[1] < 0 else r["value"] <= goal[1]
if options.json:
    print(json.dumps(rows, indent=2))
else:
    print(f"{'':34} {'':10} {'':8} goal")
    for r in rows:
        value = "-" if r["value"] is None else f"{r['value']:.2f}"
        goal = "" if "goal" not in r else f"{r['goal']:g}: {'met' if r['met'] else 'not met'}"
        print(f"{r['name']:34} {value:>10} {r['what']:8} {goal:16} {r['note']}")
