"""How a quiet box fares while a neighbour box runs a resource bomb within its limits.

    neighbour.py --pale FILE --program FILE --bombs FILE [--user NAME] [--json] [--quick] [--only BOMB[,BOMB...]]

A quiet box does small jobs (bench/neighbour.c), a session executes small pieces of code, and a program of the host
does the same jobs outside; the time of each is taken alone and beside each bomb, in turns, so that what else works
on the machine hits all alike. The bombs are those of attacks/bombs/take_all.c, each begun anew as soon as it has
taken all that it gets, and some in a shell. All boxes have the default policy's limits.

The ratio is that of the 99th percentile beside the bomb to that without; the goal is at most 1.5.
"""
import argparse
import json
import os
import pwd
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

GOAL = 1.5
HOLD = ["depth", "epoll", "inode", "inotify", "lock", "locked", "mapping", "memfd", "message", "pipe", "pty", "queue", "semaphore",
        "sent_memfd", "shm", "signal", "sparse", "tcp", "timer", "timerfd", "tmpfs", "udp", "unix", "watch", "zombie"]
SHELL = {
    "forks": "f() { f | f & }; while :; do f; wait; done 2>/dev/null",
    "loops": "while :; do :; done & while :; do :; done",
    "output": "yes",
    "disk": "while :; do head -c 200M /dev/zero >/tmp/x; rm /tmp/x; done 2>/dev/null",
    "page cache": "while :; do cat /usr/lib/*/*.so* >/dev/null; done 2>/dev/null",
    "directories": "while :; do mkdir -p /tmp/$RANDOM/a/b/c/d; ls -R /usr/share >/dev/null; done 2>/dev/null",
    "refused calls": "while :; do mount -t tmpfs x /tmp; done 2>/dev/null",
    "memory": "python3 -c 'x = []\nwhile True: x.append(bytearray(b\"x\" * (1 << 20)))'",
    "threads": "python3 -c 'import threading\nwhile True:\n try: threading.Thread(target=lambda: [0 for _ in range(9999)]).start()\n except RuntimeError: pass'",
}
parser = argparse.ArgumentParser()
parser.add_argument("--pale", required=True)
parser.add_argument("--program", required=True)
parser.add_argument("--bombs", required=True)
parser.add_argument("--user")
parser.add_argument("--json", action="store_true")
parser.add_argument("--quick", action="store_true")
parser.add_argument("--only")
options = parser.parse_args()
pale, program, bombs = map(os.path.abspath, (options.pale, options.program, options.bombs))
WINDOW_MS = 200 if options.quick else 500
TURNS = 3 if options.quick else 6
scratch = tempfile.mkdtemp(prefix="pale-bench.")
os.chmod(scratch, 0o755)
home = os.path.join(scratch, "home")
os.mkdir(home)
prefix = []
env = {"HOME": home, "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8",
       "PALE_STATE_DIR": os.path.join(home, "state"),
       "PALE_BOX_PROGRAM": os.path.join(os.path.dirname(os.path.dirname(pale)), "pale-box")}
if options.user:
    entry = pwd.getpwnam(options.user)
    os.chown(home, entry.pw_uid, entry.pw_gid)
    prefix = ["setpriv", f"--reuid={options.user}", f"--regid={options.user}", "--init-groups"]
LONG = ["-q", "--timeout", "1000s", "--cpu-time", "1000s"]


def start(command, **more):
    return subprocess.Popen([*prefix, *command], env=env, cwd="/", stderr=subprocess.DEVNULL, text=True, **more)


class Jobs:
    """The quiet program: in a box, or of the host's."""

    def __init__(self, boxed, turns):
        box = [pale, "run", *LONG, "--ro", program, "--"] if boxed else []
        self.p = start([*box, program, turns], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def measure(self):
        self.p.stdin.write(f"{WINDOW_MS}\n")
        self.p.stdin.flush()
        return [int(word) / 1000 for word in self.p.stdout.readline().split()]

    def end(self):
        self.p.stdin.close()
        self.p.wait(10)


class Executions:
    """`1 + 1` in a session, through its door."""

    def __init__(self):
        subprocess.run([*prefix, pale, "session", "new", "--name", "quiet", "--timeout", "1000s", "--cpu-time", "1000s"], env=env,
                       check=True, stdout=subprocess.DEVNULL, cwd="/")
        where = os.path.join(env["PALE_STATE_DIR"], "names", "quiet")
        fd = os.open(os.path.join(env["PALE_STATE_DIR"], "runs", os.readlink(where), "door"), os.O_PATH)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(f"/proc/self/fd/{fd}/control")
        os.close(fd)

    def measure(self):
        took, until = [], time.monotonic() + WINDOW_MS / 1000
        line = json.dumps({"pale": 1, "command": "session.exec", "arguments": {"code": "1 + 1", "rollback": False, "wait_ms": 10000}})
        while time.monotonic() < until:
            begun = time.monotonic()
            self.socket.sendall(line.encode() + b"\n")
            answer = b""
            while not answer.endswith(b"\n"):
                answer += self.socket.recv(1 << 16)
            took.append((time.monotonic() - begun) * 1000)
            time.sleep(0.002)
        return took

    def end(self):
        subprocess.run([*prefix, pale, "session", "rm", "quiet"], env=env, check=False, stdout=subprocess.DEVNULL)


def bomb(name):
    if name in SHELL:
        code = SHELL[name]
    else:
        code = f"while :; do {bombs} {name} 0 1000000; done >/dev/null 2>&1"
    # One that a limit ends is begun anew.
    again = ["bash", "-c", "trap 'kill $!; wait; exit' TERM; while :; do \"$@\" & wait; done", "bash"]
    return start([*again, pale, "run", *LONG, "--ro", bombs, "--lang", "bash", "-c", code], stdin=subprocess.DEVNULL,
                 stdout=subprocess.DEVNULL)


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))] if values else float("nan")


def measure_beside(name, quiet):
    """{who: (alone, beside)}"""
    times = {who: ([], []) for who in quiet}
    for _ in range(TURNS):
        for who, q in quiet.items():
            times[who][0].extend(q.measure())
        b = bomb(name)
        try:
            time.sleep(0.5)  # until it is known to be busy
            for who, q in quiet.items():
                times[who][1].extend(q.measure())
        finally:
            b.terminate()
            b.wait(30)
    return times


def main():
    turns = subprocess.run([program], capture_output=True, text=True, check=True).stdout.strip()
    quiet = {"box": Jobs(True, turns), "session": Executions(), "host": Jobs(False, turns)}
    names = options.only.split(",") if options.only else [*SHELL, *HOLD]
    rows = []
    print(f"{'':14}" + "".join(f"{who + ': p50':>16}{'p99':>14}{'p99 ratio':>11}" for who in quiet), file=sys.stderr)
    try:
        for name in names:
            times = measure_beside(name, quiet)
            line, row = f"{name:14}", {"bomb": name}
            for who, (alone, beside) in times.items():
                a, b = ([percentile(t, p) for p in (0.5, 0.9, 0.99)] for t in (alone, beside))
                row[who] = {"alone_ms": a, "beside_ms": b, "ratio": b[2] / a[2]}
                line += f"{a[0]:9.2f} {b[0]:6.2f}{a[2]:8.2f} {b[2]:5.2f}{b[2] / a[2]:11.2f}"
            rows.append(row)
            print(line, file=sys.stderr, flush=True)
    finally:
        for q in quiet.values():
            q.end()
    for who in quiet:
        ratios = [r[who]["ratio"] for r in rows]
        print(f"{who}: median {statistics.median(ratios):.2f}, worst {max(ratios):.2f}, at most {GOAL}: "
              f"{sum(r <= GOAL for r in ratios)} of {len(ratios)}", file=sys.stderr)
    if options.json:
        print(json.dumps(rows))


try:
    main()
finally:
    shutil.rmtree(scratch, ignore_errors=True)
