"""Every attack on the kernel's surface in a real box: denied, and those that the filter refuses are in the
log by the program's name. What a box's namespaces, mounts and users hold is put up outside first, and
shown to work there. TAP on stdout.

usage: boxed.py PALE DIRECTORY FILTER-ATTACK... -- BOX-ATTACK...
"""
import ctypes
import json
import os
import socket
import subprocess
import sys
import tempfile

pale, where, *names = sys.argv[1:]
by_filter, by_box = names[:names.index("--")], names[names.index("--") + 1:]
must = os.environ.get("PALE_MUST_WORK", "").split(",")
number = 0
failed = False
libc = ctypes.CDLL(None, use_errno=True)
name = f"pale-attack-{os.getpid()}"


def result(ok, text, skip=""):
    global number, failed
    number += 1
    failed |= not ok
    print(f"{'ok' if ok else 'not ok'} {number} - {text}{' # SKIP ' + skip if skip else ''}")


def outside(attack, argument):
    done = subprocess.run([os.path.join(where, attack), argument], capture_output=True, text=True, check=False,
                          env=dict(os.environ, ATTACK_OUTSIDE="1"), timeout=60)
    text = done.stdout.strip()
    result(True, f"{attack} works outside", "" if text == "SUCCEEDED" else text)


def boxed(profile, state):
    """What each attack printed, and the names of programs whose calls were refused."""
    script = 'd=$1 n=$2; shift 2; for i; do a=$n; case $i in init_*) a=1;; esac; echo "$i $("$d/$i" "$a")"; done'
    done = subprocess.run([pale, "run", "--quiet", "--profile", profile, "--ro", where, "--", "sh", "-c", script, "sh",
                           where, name, *by_filter, *by_box],
                          capture_output=True, text=True, check=False, timeout=120,
                          env=dict(os.environ, PALE_STATE_DIR=state))
    printed = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    shown = subprocess.run([pale, "audit", "show", "last", "--json"], capture_output=True, text=True, check=False,
                           env=dict(os.environ, PALE_STATE_DIR=state), timeout=60)
    events = [json.loads(line) for line in shown.stdout.splitlines() if line.startswith("{")]
    told = {}
    for event in events:
        if event.get("event") == "call.denied":
            told.setdefault(os.path.basename(event.get("program", "")), []).append(event.get("call", ""))
    return done, printed, told


with tempfile.TemporaryDirectory(prefix="pale-test-boxed-") as state, socket.socket(socket.AF_UNIX) as listener:
    listener.bind("\0" + name)
    listener.listen(8)
    queue = libc.mq_open(b"/" + name.encode(), os.O_CREAT | os.O_RDWR, 0o600, None)
    segment = libc.shmget(0, 4096, 0o1600)
    with subprocess.Popen(["sleep", "60"]) as other:
        try:
            for attack in by_box:
                outside(attack, str(other.pid) if attack.startswith("init_") else name)
        finally:
            other.kill()
    try:
        for profile in "default", "strict":
            done, printed, told = boxed(profile, state)
            if not printed and "userns" not in must and not os.environ.get("PALE_MUST_WORK"):
                result(True, f"no box in {profile}", "SKIP: " + done.stderr.strip()[-200:].replace("\n", " "))
                continue
            result(done.returncode == 0, f"the attacks ran in {profile}")
            if done.returncode:
                print("# " + done.stderr.strip()[-500:].replace("\n", "\n# "))
            for attack in by_filter + by_box:
                text = printed.get(attack, "nothing")
                result(text.startswith("denied ") or text == "not here", f"{attack} is denied in a {profile} box: {text}")
            if profile == "strict":
                continue
            for attack in by_filter:
                calls = told.get(attack, [])
                result(bool(calls) or printed.get(attack) == "not here",
                       f"{attack} is in the log: {' '.join(calls) or 'nothing'}")
    finally:
        libc.mq_unlink(b"/" + name.encode())
        libc.shmctl(segment, 0, None)
print(f"1..{number}")
sys.exit(failed)
