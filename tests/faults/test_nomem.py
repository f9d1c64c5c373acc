#!/usr/bin/python3
"""The Nth allocation fails, and then all that follow: an error and no box, or the run as it would have been.

Here some of them fail, with PALE_FAULTS=all each of them.
usage: test_nomem.py PALE DIRECTORY-OF-PROGRAMS
"""
import struct

from faults import *

NOMEM = os.path.join(programs, "pale-nomem")
counter = os.path.join(place, "nomem")


def run(at, forever, flags=()):
    with open(counter, "wb") as f:
        f.write(struct.pack("lll", at, forever, 0))
    r = Faulty(None, flags, more={"PALE_NOMEM": counter}, program=NOMEM)
    with open(counter, "rb") as f:
        r.allocations = struct.unpack("lll", f.read())[2]
    r.failed = [f"allocation {at}{' and on' if forever else ''}"] if 0 < at <= r.allocations else []
    return r


def sweep(what, flags, step):
    normal = run(0, 0, flags)
    check(f"{what}: {normal.allocations} allocations", normal.status == 0 and normal.allocations > 100, normal)
    wrong, done, refused = [], 0, 0
    for forever in (0, 1):
        for n in range(1, normal.allocations + 5, 1 if ALL else step):
            r = run(n, forever, flags)
            done += bool(r.failed)
            refused += r.status == 125
            why = r.wrong(same(normal.out))
            if why:
                wrong.append(f"{r.failed}: {why}: {r}")
                if ALL:
                    print("#", wrong[-1][:1500], flush=True)
    check(f"{what}: {done} allocations failed, {refused} launches refused: none is a hole", not wrong and refused, "\n".join(wrong))


@case
def test_plain():
    sweep("a plain box", [], 131)
    nothing_left("a plain box")


@case
def test_overlay():
    os.mkdir(os.path.join(place, "work"))
    sweep("an overlay", ["--overlay", os.path.join(place, "work")], 257)
    nothing_left("an overlay")


@case
def test_session():
    """In the supervisor of a session, from its start to its end, with an execution and a file."""
    env.update(PALE=pale, PALE_BOX_PROGRAM=os.path.join(programs, "pale-box-nomem"), PLACE=place)
    script = """
    "$PALE" session new --name work && "$PALE" session exec work -c 'print(6 * 7)' &&
    "$PALE" session cp "$PLACE/secret" work:/tmp/ && "$PALE" session cp work:/tmp/secret "$PLACE/copied" && echo done
    s=$?; "$PALE" session rm --all; exit $s
    """

    def session(at, forever):
        with open(counter, "wb") as f:
            f.write(struct.pack("lll", at, forever, 0))
        begun = time.monotonic()
        try:
            p = subprocess.run(["sh", "-c", script], env={**env, "PALE_NOMEM": counter}, stdin=subprocess.DEVNULL,
                               capture_output=True, text=True, timeout=TIMEOUT, check=False)
        except subprocess.TimeoutExpired:
            return "hangs", 0
        finally:
            subprocess.run([pale, "session", "rm", "--all"], env=env, capture_output=True, timeout=TIMEOUT, check=False)
            # Who never gets memory again cannot even hear that it is to end.
            for pid in ours() if forever else []:
                os.kill(pid, signal.SIGKILL)
        with open(counter, "rb") as f:
            count = struct.unpack("lll", f.read())[2]
        why = None
        if p.returncode == 0 and p.stdout != "work\n42\ndone\n":
            why = f"success, but {p.stdout!r}"
        elif p.returncode not in (0, 1, 2, 3, 125) or (p.returncode and "pale: " not in p.stderr):
            why = f"status {p.returncode}, {p.stderr!r}"
        elif wait_for_none(ours):
            why = f"left: {ours()}"
        return why and f"{why} after {time.monotonic() - begun:.1f} s", count

    why, count = session(0, 0)
    check(f"a session: {count} allocations", not why and count > 100, why)
    wrong = []
    for n in range(1, count, 7 if ALL else 1433):
        for forever in (0, 1):
            why, _ = session(n, forever)
            if why:
                wrong.append(f"allocation {n}{' and on' if forever else ''}: {why}")
                if ALL:
                    print("#", wrong[-1], flush=True)
    check("a session: refused, ended or as ever, each time", not wrong, "\n".join(wrong))
    nothing_left("a session")


done()
