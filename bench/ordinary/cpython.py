"""CPython's own regression tests (Debian's libpython3.11-testsuite), each file outside and in a box in turn.

A file is a process of its own with a time limit. What needs the network or other resources is off in
both places (regrtest's default). A file that fails anywhere is run once more there, because some of
them fail now and then on a busy machine. One that passes outside and not in a default box is then run
in a box fitted for it: higher limits, and the interpreter in a workspace.
"""
import json
import os
import re
import shutil
import subprocess
import time

from places import json_of

PYTHON = "/usr/bin/python3"
LIBRARY = "/usr/lib/python3.11"
# How long a file takes is not what is compared.
DEFAULT = ["--timeout", "15m", "--set", "limits.cpu=15m", "--set", "limits.output=8MiB"]
FITTED = [*DEFAULT, "--memory", "3GiB", "--cpus", "2", "--processes", "1024", "--disk", "3GiB",
          "--set", "limits.open_files=4096", "--set", "limits.file_size=8GiB"]
SECONDS = 900

# What passes outside and not inside, as it is documented in docs/ORDINARY.md; any other is a goal missed.
BAD = ("fail", "time")
REASONS = {
    "test_resource": "wants no hard limit on the size of files, and to set a far one on processor time; a box always has both",
    "test_socket": "wants sockets of UDP-Lite, which nobody uses, and which the kernel is about to drop",
}


def names():
    """The files of the suite, as regrtest lists them; what was not in the package is not there."""
    listed = subprocess.run([PYTHON, "-m", "test", "--list-tests"], capture_output=True, text=True, cwd="/", check=True)
    return listed.stdout.split()


def judge(status, text):
    """pass, skip, fail or time, and what was skipped and what failed in it."""
    test, skipped, failed = "", {}, set()
    for line in text.splitlines():
        if m := re.match(r"(\w+) \(([\w.]+)\)", line):
            test = m[2] if m[2].endswith(m[1]) else f"{m[2]}.{m[1]}"
        if m := re.search(r"\.\.\. skipped (.*)", line):
            skipped[test] = m[1].strip("'\"")
        if m := re.match(r"(?:FAIL|ERROR): (\w+) \(([\w.]+)\)", line):
            failed.add(m[2])
    if status is None:
        verdict = "time"
    elif status != 0:
        verdict = "fail"
    elif re.search(r"^1 test skipped:|NO TESTS RAN|^1 test run no tests", text, re.M):
        verdict = "skip"
    else:
        verdict = "pass"
    ran = sum(int(n) for n in re.findall(r"^Ran (\d+) tests?", text, re.M))
    return {"verdict": verdict, "ran": ran, "skipped": skipped, "failed": sorted(failed)}


def workspace(who):
    """The interpreter and its library as a directory of the caller's, like one that pyenv or conda made: some files
    delete compiled modules beside the library's, and on the read-only /usr the kernel refuses that before it sees
    that there are none."""
    place = who.home + "/python"
    if not os.path.exists(place):
        os.makedirs(place + "/bin")
        shutil.copy(os.path.realpath(PYTHON), place + "/bin/python3.11")
        shutil.copytree(LIBRARY, place + "/lib/python3.11", symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        packages = "/usr/lib/python3/dist-packages"
        os.makedirs(place + "/lib/python3/dist-packages")
        for name in set(os.listdir(packages)) - {"__pycache__"}:
            os.symlink(os.path.join(packages, name), os.path.join(place, "lib/python3/dist-packages", name))
        if who.uid != os.getuid():
            subprocess.run(["chown", "-Rh", f"{who.uid}:{who.gid}", place], check=True)
    return place


def one(args, who, place, name):
    """A file once, in a place: outside, default or fitted."""
    command = [PYTHON, "-m", "test", "-v", name]
    start = time.monotonic()
    more = {}
    if place == "outside":
        status, out, err = who.run(command, SECONDS, cwd=who.home + "/tmp")
    else:
        flags = DEFAULT
        if place == "fitted":
            folder = workspace(who)
            flags = [*FITTED, "--overlay", folder]
            command[0] = folder + "/bin/python3.11"
        status, text, said = who.run([args.pale, "run", "--json", *flags, "--", *command], SECONDS + 60)
        result = json_of(text)
        out, err = result.get("stdout", ""), result.get("stderr", said)
        more = {key: result[key] for key in ("summary", "blocked", "limits_hit") if result.get(key)}
        if result.get("outcome") == "wall time":
            status = None
    found = judge(status, out + err) | more | {"seconds": round(time.monotonic() - start, 1)}
    if found["verdict"] in BAD:
        found["said"] = (out + err)[-20000:]
    return found


def measure(args, who, progress):
    """{file: {place: what was found}}; with args.results, what a run that was stopped has found is not run again."""
    found = {}
    path = f"{args.results}.{who.name}" if args.results else None
    if path and os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            for line in f:
                row = json.loads(line)
                found.setdefault(row["file"], {})[row["place"]] = row["found"]
    wanted = args.files.split(",") if args.files else names()

    def keep(name, place, what):
        found.setdefault(name, {})[place] = what
        if path:
            with open(path, "a", encoding="utf-8") as f:
                f.write(json.dumps({"file": name, "place": place, "found": what}) + "\n")

    for number, name in enumerate(wanted):
        # In turn, and each first as often as the other.
        for place in ("outside", "default") if number % 2 == 0 else ("default", "outside"):
            if place in found.get(name, {}) or place not in args.places.split(","):
                continue
            progress(f"{who.name}: CPython's tests, {number + 1} of {len(wanted)}: {name} {place}")
            what = one(args, who, place, name)
            if what["verdict"] in BAD:
                again = one(args, who, place, name)
                if again["verdict"] not in BAD:
                    what = again | {"second": True}
            keep(name, place, what)
        mine = found.get(name, {})
        if "fitted" not in mine and mine.get("outside", {}).get("verdict") == "pass" \
                and mine.get("default", {}).get("verdict", "pass") != "pass":
            progress(f"{who.name}: CPython's tests, {number + 1} of {len(wanted)}: {name} fitted")
            keep(name, "fitted", one(args, who, "fitted", name))
    return {name: found[name] for name in wanted if name in found}


def summary(found):
    """The figures of a caller."""
    both = {name: places for name, places in found.items() if "outside" in places and "default" in places}
    passed = [name for name, places in both.items() if places["outside"]["verdict"] == "pass"]
    default = [name for name in passed if both[name]["default"]["verdict"] == "pass"]
    fitted = [name for name in passed if name not in default and both[name].get("fitted", {}).get("verdict") == "pass"]
    failing = [name for name in passed if name not in default and name not in fitted]
    # What the file itself leaves out inside though it ran outside.
    fewer = {name: sorted(set(both[name]["default"]["skipped"]) - set(both[name]["outside"]["skipped"]))
             for name in default}
    percent = 100 * (len(default) + len(fitted)) / len(passed) if passed else 0
    return {"files": len(both), "outside": len(passed),
            "skipped_outside": sum(p["outside"]["verdict"] == "skip" for p in both.values()),
            "failed_outside": sorted(n for n, p in both.items() if p["outside"]["verdict"] in BAD),
            "default": len(default), "fitted": sorted(fitted), "failing": sorted(failing), "percent": round(percent, 2),
            "unexplained": sorted(set(failing) - set(REASONS)),
            "tests_outside": sum(both[name]["outside"]["ran"] for name in default),
            "tests_default": sum(both[name]["default"]["ran"] for name in default),
            "skipped_inside_only": {name: tests for name, tests in fewer.items() if tests},
            "seconds": {place: round(sum(p[place]["seconds"] for p in both.values()), 1) for place in ("outside", "default")}}


def show(who, figures):
    print(f"\nCPython's tests, as {who}: {figures['files']} files; {figures['skipped_outside']} skip themselves outside, "
          f"{len(figures['failed_outside'])} fail there")
    print(f"  pass outside                           {figures['outside']:>6}{figures['seconds']['outside']:>10.1f} s")
    print(f"  of these pass in the default box       {figures['default']:>6}{figures['seconds']['default']:>10.1f} s")
    print(f"  with higher limits, or the interpreter in a workspace {len(figures['fitted']):>4}: {', '.join(figures['fitted']) or 'none'}")
    print(f"  fail inside                            {len(figures['failing']):>6}")
    for name in figures["failing"]:
        print(f"    {name}: {REASONS.get(name, 'NOT EXPLAINED')}")
    print(f"  passing files, single tests inside / outside: {figures['tests_default']} / {figures['tests_outside']}; "
          f"{sum(map(len, figures['skipped_inside_only'].values()))} skip themselves inside only")
