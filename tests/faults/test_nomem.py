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
    sweep("a plain box", [], 97)
    nothing_left("a plain box")


@case
def test_overlay():
    os.mkdir(os.path.join(place, "work"))
    sweep("an overlay", ["--overlay", os.path.join(place, "work")], 193)
    nothing_left("an overlay")


done()
