#!/usr/bin/python3
"""The Nth system call fails, in each process between the command line and the code.

Here some of them fail, with PALE_FAULTS=all each of them, which takes minutes.
"""
from faults import *

UNTIL = ["-u", "canary"]


def sweep(what, flags, step, normal):
    """Each call of each process, or some of them."""
    r = Faulty(UNTIL, flags)
    check(f"{what}: it runs under the injector", r.wrong(normal) is None and r.status == 0, r)
    wrong, slow, done, refused, slowest = [], [], 0, 0, 0
    for process, calls in sorted(r.calls.items()):
        # Programs do not have the same number of calls each time.
        for n in range(1, calls + 5, 1 if ALL else step):
            f = Faulty([*UNTIL, "-p", str(process), "-n", str(n)], flags)
            done += bool(f.failed)
            refused += f.status == 125
            slowest = max(slowest, f.seconds)
            if f.seconds > 10:
                slow.append(f"process {process} call {n} {f.failed}: {f.seconds:.1f} s")
            why = f.wrong(normal)
            if why:
                wrong.append(f"process {process} call {n} {f.failed}: {why}: {f}")
                if ALL:
                    print("#", wrong[-1][:1500], flush=True)
    check(f"{what}: {done} faults, {refused} launches refused, the slowest took {slowest:.1f} s: none is a hole", not wrong and done,
          "\n".join(wrong))
    check(f"{what}: nearly all are seen at once", len(slow) <= done / 20, "\n".join(slow))
    if ALL:
        print("#", "\n# ".join(slow), flush=True)


@case
def test_plain():
    normal = normal_box()
    sweep("a plain box", [], 43, normal)
    nothing_left("a plain box")


@case
def test_network():
    """With a broker, its keeper, an overlay and something to collect: three times as many calls."""
    for name in ("work", "out"):
        os.mkdir(os.path.join(place, name))
    flags = ["--allow", "example.com", "--publish", os.path.join(place, "socket") + ":7000",
             "--overlay", os.path.join(place, "work"), "--rw", os.path.join(place, "out") + ":/out:1MiB"]
    sweep("a box with a network", flags, 131, normal_box(flags))
    check("no socket is left", not os.path.exists(os.path.join(place, "socket")))
    nothing_left("a box with a network")


done()
