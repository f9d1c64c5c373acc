"""TAP for the tests of egress."""
import os
import sys
import traceback

must_work = os.environ.get("PALE_MUST_WORK", "").split(",")
number = failed = 0


def check(what, ok, detail=""):
    global number, failed
    number += 1
    failed += not ok
    print(f"{'ok' if ok else 'not ok'} {number} - {what}")
    if not ok and detail != "":
        print("\n".join("# " + line[:600] for line in str(detail).splitlines()[-40:]))
    sys.stdout.flush()
    return bool(ok)


def same(what, got, want):
    return check(what, got == want, f"got  {got!r}\nwant {want!r}")


def skip(what, why, ability=None):
    """Loud, and a failure where the machine was said to have it."""
    global number, failed
    number += 1
    bad = ability in must_work
    failed += bad
    print(f"{'not ok' if bad else 'ok'} {number} - {what}" + (f": {why}" if bad else f" # SKIP {why}"))


def case(function):
    """Runs it at once; an exception is a failed test, and the others still run."""
    try:
        function()
    except Exception:
        check(function.__name__.replace("_", " "), False, traceback.format_exc())
    return function


def done():
    print(f"1..{number}")
    sys.exit(failed > 0)
