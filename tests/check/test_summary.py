"""The count at the end of ./dev check is right, and can fail. TAP."""
import json
import pathlib
import subprocess
import sys
import tempfile

SUMMARY = pathlib.Path(__file__).with_name("summary.py")
ROWS = [
    # what, tests as (result, exit status, stdout), the last line, exit status
    ("all pass", [("OK", 0, "1..2\nok 1 - a\nok 2 - b\n")], "2 passed, 0 failed, 0 skipped", 0),
    ("one fails", [("FAIL", 1, "1..2\nok 1 - a\nnot ok 2 - b\n")], "1 passed, 1 failed, 0 skipped", 1),
    ("one is skipped", [("OK", 0, "1..2\nok 1 - a\nok 2 - b # SKIP no kernel\n")], "1 passed, 0 failed, 1 skipped", 0),
    ("cmocka's form of a skip", [("OK", 0, "1..2\nok 1 - a\nnot ok 2 # SKIP b\n")], "1 passed, 0 failed, 1 skipped", 0),
    ("all skipped is no success", [("SKIP", 0, "1..0 # SKIP no cgroups\n")], "0 passed, 0 failed, 1 skipped", 1),
    ("dies half-way", [("ERROR", -11, "1..3\nok 1 - a\n")], "1 passed, 1 failed, 0 skipped", 1),
    ("bails out", [("ERROR", 1, "1..3\nok 1 - a\nBail out! no\n")], "1 passed, 1 failed, 0 skipped", 1),
    ("times out", [("TIMEOUT", -15, "1..1\nok 1 - a\n")], "1 passed, 1 failed, 0 skipped", 1),
    ("fails after its tests (a leak)", [("ERROR", 1, "1..1\nok 1 - a\n")], "1 passed, 1 failed, 0 skipped", 1),
    ("speaks no TAP", [("OK", 0, "hello\n"), ("FAIL", 1, None)], "1 passed, 1 failed, 0 skipped", 1),
    ("no test at all", [], "0 passed, 1 failed, 0 skipped", 1),
]

print(f"1..{len(ROWS) + 7}")


said = []


def summarise(tests, *more):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as log:
        for result, status, stdout in tests:
            log.write(json.dumps({"name": "t", "result": result, "returncode": status, "stdout": stdout}) + "\n")
        log.flush()
        done = subprocess.run([sys.executable, SUMMARY, *more, f"where={log.name}"], capture_output=True, text=True)
    said[:] = done.stdout.splitlines()
    return said[-1], done.returncode


failed = False
for number, (what, tests, last, status) in enumerate(ROWS, 1):
    got = summarise(tests)
    failed |= got != (last, status)
    print(f"{'ok' if got == (last, status) else 'not ok'} {number} - {what}: {got}")
got = summarise([("OK", 0, "1..1\nok 1\n")], "--passed", "3", "--failed", "formatting")
print(f"{'ok' if got == ('4 passed, 1 failed, 0 skipped', 1) else 'not ok'} {len(ROWS) + 1} - other checks count: {got}")
gone = subprocess.run([sys.executable, SUMMARY, "where=/nonexistent"], capture_output=True, text=True)
print(f"{'ok' if gone.returncode == 1 and ', 1 failed,' in gone.stdout else 'not ok'} {len(ROWS) + 2} - a log that is missing")
AGAIN = [
    # what the second run of a failed test printed, the last line, exit status, whether it is told as unstable
    ("ok 1 - a", "1 passed, 0 failed, 0 skipped", 0, True),
    ("not ok 1 - a", "0 passed, 1 failed, 0 skipped", 1, False),
    ("ok 1 - a # SKIP gone", "0 passed, 1 failed, 0 skipped", 1, False),
    ('{"name": "t", "res', "0 passed, 1 failed, 0 skipped", 1, False),  # cut off
]
for number, (second, last, status, unstable) in enumerate(AGAIN, len(ROWS) + 3):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as log:
        log.write(second if second[0] == "{" else
                  json.dumps({"name": "t", "result": "OK", "returncode": 0, "stdout": f"1..1\n{second}\n"}) + "\n")
        log.flush()
        got = summarise([("FAIL", 1, "1..1\nnot ok 1 - a\n")], "--again", f"where={log.name}")
    good = got == (last, status) and any(line.startswith("UNSTABLE") for line in said) == unstable
    failed |= not good
    print(f"{'ok' if good else 'not ok'} {number} - run again: {second}: {got}")
with tempfile.NamedTemporaryFile("w", suffix=".json") as log:
    for name, line in (("pale:once / a/b", "not ok 1"), ("pale / c", "ok 1"), ("pale / d", "not ok 1")):
        log.write(json.dumps({"name": name, "result": "OK", "returncode": 0, "stdout": f"1..1\n{line}\n"}) + "\n")
    log.flush()
    got = subprocess.run([sys.executable, SUMMARY, "--names", log.name], capture_output=True, text=True, check=False).stdout
failed |= got != "a/b\nd\n"
print(("ok" if got == "a/b\nd\n" else "not ok") + f" {len(ROWS) + 7} - the names of what failed")
sys.exit(failed)
