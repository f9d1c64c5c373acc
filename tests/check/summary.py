"""Adds up what Meson's tests reported: TAP results where a test speaks TAP, else the test as one.

Prints what failed and what was skipped, each with its reason, and the count as the last line:
"N passed, N failed, N skipped". Exits 1 if anything failed or nothing ran.

A test program that failed beside others may have been run again, alone (NAME-again): then that is what
counts, and the first failure is told as UNSTABLE, since a busy machine is a reason to look, not to stop.
"""
import argparse
import json
import re
import sys

LINE = re.compile(r"^(not )?ok\b\s*(\d+)?\s*(?:-\s*)?(.*?)\s*(?:#\s*(SKIP|TODO)\S*\s*(.*))?$", re.I)
PLAN = re.compile(r"^1\.\.(\d+)\s*(?:#\s*(.*))?$")
REASON_MAX = 300  # characters
SKIPPED_PLAN = re.compile(r"^skip\S*\s*(.*)$", re.I)


class Count:
    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []
        self.unstable = []


def counted(test):
    count = Count()
    add_test(count, "", test, quiet=True)
    return count


def read(path):
    with open(path, encoding="utf-8", errors="replace") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def add_test(count, where, test, quiet=False):
    """One test program; its TAP lines, and a failure of its own if it ended badly or fell short."""
    name = f"{where}: {test['name']}"
    result = test.get("result", "ERROR")
    failed_before = len(count.failed)
    seen = 0
    planned = None
    lines = (test.get("stdout") or "").splitlines()
    for at, line in enumerate(lines):
        plan = PLAN.match(line)
        if plan:
            planned = int(plan.group(1))
            skip = SKIPPED_PLAN.match(plan.group(2) or "")
            if planned == 0:
                count.skipped.append((name, skip.group(1) if skip else "no tests"))
                return
            continue
        if line.startswith("Bail out!"):
            count.failed.append((name, line))
            return
        ok = LINE.match(line)
        if not ok:
            continue
        seen += 1
        not_ok, _, what, directive, reason = ok.groups()
        title = f"{name}: {what}" if what else name
        if directive and directive.upper() == "SKIP":
            count.skipped.append((title, reason or what))
        elif not_ok and not directive:
            count.failed.append((title, why(lines[at + 1:])))
        else:
            count.passed += 1
    if seen == 0:
        if result in ("OK", "EXPECTEDFAIL"):
            count.passed += 1
        elif result == "SKIP":
            count.skipped.append((name, "see its log"))
        else:
            count.failed.append((name, f"{result}, exit status {test.get('returncode')}"))
    elif planned is not None and seen != planned:
        count.failed.append((name, f"planned {planned} tests, ran {seen}; {result}"))
    elif result not in ("OK", "SKIP", "EXPECTEDFAIL") and len(count.failed) == failed_before:
        count.failed.append((name, f"{result}, exit status {test.get('returncode')}"))
    if len(count.failed) > failed_before and not quiet:
        tell(name, test)


def why(lines):
    """The end of the comments below a failed line, in one: a log may be cut to its last lines."""
    comments = []
    for line in lines:
        if not line.startswith("#"):
            break
        comments.append(line.lstrip("# ").rstrip())
    return " | ".join(c for c in comments if c)[-REASON_MAX:].encode("unicode_escape").decode()


def tell(name, test):
    """The end of a failed test's output, so that a log of CI suffices to understand it."""
    print(f"--- {name}")
    for stream in ("stdout", "stderr"):
        for line in (test.get(stream) or "").splitlines()[-40:]:
            print("  | " + line.encode("unicode_escape").decode())


def together(entries):
    """The same test in several runs is told once: "files/race: ... (gcc-root, gcc-unprivileged)"."""
    seen = {}
    for title, reason in entries:
        where, _, what = title.partition(": ")
        seen.setdefault(f"{what}: {reason}" if what and reason else what or reason, []).append(where)
    return [(what, ", ".join(places)) for what, places in seen.items()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--passed", type=int, default=0)
    parser.add_argument("--failed", action="append", default=[])
    parser.add_argument("--skipped", action="append", default=[])
    parser.add_argument("--names", metavar="FILE", help="only print the names of the failed test programs in Meson's testlog.json")
    parser.add_argument("--again", action="append", default=[], metavar="NAME=FILE", help="as LOG, of those that were run again")
    parser.add_argument("logs", nargs="*", help="NAME=FILE: Meson's testlog.json")
    args = parser.parse_args()
    if args.names:
        print("\n".join(test["name"].rpartition(" / ")[2] for test in read(args.names) if counted(test).failed))
        return 0
    again = {}
    for log in args.again:
        where, path = log.split("=", 1)
        try:
            again.update({(where, test["name"]): test for test in read(path)})
        except (OSError, ValueError):
            pass  # then the first time counts
    count = Count()
    count.passed = args.passed
    count.failed = [(name, "") for name in args.failed]
    count.skipped = [("check", reason) for reason in args.skipped]
    for log in args.logs:
        where, path = log.split("=", 1)
        try:
            tests = read(path)
        except (OSError, ValueError) as error:
            count.failed.append((where, f"no results: {error}"))
            continue
        if not tests:
            count.failed.append((where, "no test ran"))
        for test in tests:
            second = again.get((where, test["name"]))
            result = counted(second) if second else Count()
            # What is skipped the second time has shown nothing.
            if result.passed and not result.failed:
                first = Count()
                add_test(first, where, test)
                count.unstable += first.failed
            add_test(count, where, second if result.passed or result.failed else test)
    for what, places in together(count.skipped):
        print(f"SKIPPED {what} ({places})")
    for title, reason in count.unstable:
        print(f"UNSTABLE {title}{': ' + reason if reason else ''}")
    for title, reason in count.failed:
        print(f"FAILED {title}{': ' + reason if reason else ''}")
    print(f"{count.passed} passed, {len(count.failed)} failed, {len(count.skipped)} skipped")
    return 1 if count.failed or count.passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
