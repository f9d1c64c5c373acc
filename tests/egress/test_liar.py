"""What a broker that was taken over can do to its supervisor: nothing but end its own box.

    test_liar.py PALE LIAR
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tap import case, check, done, same, skip  # noqa: E402

PALE, LIAR = sys.argv[1:3]
place = tempfile.mkdtemp(prefix="pale-liar.")


def run(mode, command="sleep 60", timeout=60, limit=30):
    program = os.path.join(place, mode)
    shutil.copy(LIAR, program)
    state = os.path.join(place, "state-" + mode)
    os.mkdir(state, 0o700)
    env = {**os.environ, "PALE_STATE_DIR": state, "PALE_EGRESS_PROGRAM": program}
    start = time.monotonic()
    p = subprocess.Popen([PALE, "run", "--allow", "www.example.com", "--timeout", str(limit), "--", "sh", "-c", command],
                         env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, err = p.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        p.kill()
        out, err = p.communicate()
        return None, err, timeout, 0
    size = sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(state) for f in files)
    return p.returncode, err, time.monotonic() - start, size


probe = run("honest", "true")
if probe[0] != 0:
    skip("a box with network rules", probe[1].decode(errors="replace")[:200], "userns")
    done()


@case
def ends():
    for mode in ("close", "shutdown", "deaf"):
        code, err, took, _ = run(mode)
        check(f"{mode}: the socket's end is the box's, though the broker lives", code == 125 and took < 20 and b"broker" in err,
              (code, err, took))


@case
def words():
    code, err, took, _ = run("words")
    check("its last words are told", code == 125 and b"words" in err, (code, err))
    same("but no terminal obeys them", [b for b in err if b < 0x20 and b != 0x0a or b > 0x7e], [])


@case
def texts():
    code, err, took, _ = run("tell")
    check("what it tells is told", b"blocked" in err, err)
    same("in plain characters", [b for b in err if b < 0x20 and b != 0x0a or b > 0x7e], [])
    env = {**os.environ, "PALE_STATE_DIR": os.path.join(place, "state-tell")}
    id = err.split(b"audit show ")[1].split()[0]
    for flags in ([], ["--blocked"], ["--events"]):
        out = subprocess.run([PALE, "audit", "show", *flags, id], env=env, capture_output=True, timeout=20).stdout
        same(f"also in `audit show {' '.join(flags)}`", [b for b in out if b < 0x20 and b != 0x0a or b == 0x7f] + out.split(b"\xc2\x9b")[1:], [])


@case
def flood():
    code, err, took, size = run("flood")
    check("a flood of events ends the box", code == 125 and b"broker" in err, (code, err[:300], took))
    check("and costs the log little", size < 16 << 20, size)


@case
def mute():
    for mode in ("mute", "ask"):
        code, err, took, _ = run(mode, limit=4)
        check(f"{mode}: the box's time is over when it is over", code == 124 and took < 20, (code, err, took))


shutil.rmtree(place, ignore_errors=True)
done()
