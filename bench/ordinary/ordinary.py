"""How ordinary it is in a box: CPython's own tests, and a corpus of short programs, inside against outside.

    ordinary.py --pale FILE [--user NAME] [--only cpython|programs] [--files NAMES] [--results FILE] [--json]

As root and as an unprivileged user, each against itself outside. docs/ORDINARY.md tells what was found.
"""
import argparse
import json
import os
import shutil
import sys
import tempfile

import cpython
import programs
from places import Who


def main():
    parser = argparse.ArgumentParser(prog="./dev bench ordinary")
    parser.add_argument("--pale", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--user", help=argparse.SUPPRESS)
    parser.add_argument("--callers", default="root,user", help=argparse.SUPPRESS)
    parser.add_argument("--places", default="outside,default", help=argparse.SUPPRESS)
    parser.add_argument("--beside", default="outside,pale,bubblewrap,gVisor", help=argparse.SUPPRESS)
    parser.add_argument("--only", choices=["cpython", "programs"], help="one of the two halves")
    parser.add_argument("--files", help="only these files of CPython's tests, with commas between them")
    parser.add_argument("--results", help="keep what was found in FILE.root and FILE.user, and go on from there")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    args = parser.parse_args()

    def progress(text):
        print(f"dev: {text}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="pale-bench.") as scratch:
        os.chmod(scratch, 0o755)
        shutil.copy(args.pale, scratch + "/pale")  # where the unprivileged caller can reach it
        args.pale = os.path.join(scratch, "pale")
        callers = []
        if os.getuid() == 0 and "root" in args.callers:
            callers.append(Who("root", None, scratch))
        if (args.user or os.getuid() != 0) and "user" in args.callers:
            callers.append(Who("user", args.user, scratch))
        result = {"callers": {}, "goals": []}
        for who in callers:
            part = result["callers"][who.name] = {}
            if args.only != "cpython":
                part["programs"] = programs.summary(programs.measure(args, who, progress))
            if args.only != "programs":
                part["cpython"] = cpython.summary(cpython.measure(args, who, progress))
    missed = goals(result)
    if args.json:
        print(json.dumps(result, indent=1))
    else:
        for name, part in result["callers"].items():
            for kind, module in (("programs", programs), ("cpython", cpython)):
                if kind in part:
                    module.show(name, part[kind])
        print(f"\n  {'goal':<62}{'value':>9}{'goal':>9}")
        for g in result["goals"]:
            print(f"  {g['goal']:<62}{g['value']:>9}{g['limit']:>9}  {'met' if g['met'] else 'MISSED'}")
        if os.getuid() != 0:
            print("\nNot measured: root (run ./dev bench as root for both).")
    return 1 if missed else 0


def goals(result):
    """Fills in the goals; how many were missed."""
    for name, part in result["callers"].items():
        if "programs" in part:
            counts = part["programs"]["groups"]["all"]
            result["goals"].append({"goal": f"{name}: programs that pass outside pass in a box", "value": counts["pale"],
                                    "limit": counts["outside"], "met": counts["pale"] >= counts["outside"]})
        if "cpython" in part:
            figures = part["cpython"]
            result["goals"].append({"goal": f"{name}: CPython's files that pass outside pass in a box, percent",
                                    "value": figures["percent"], "limit": 99.5, "met": figures["percent"] >= 99.5})
            result["goals"].append({"goal": f"{name}: files that fail inside, without a known reason",
                                    "value": len(figures["unexplained"]), "limit": 0, "met": not figures["unexplained"]})
    return sum(not g["met"] for g in result["goals"])


if __name__ == "__main__":
    sys.exit(main())
