"""Two hundred short programs, as language models write them: outside, in a box, and in the sandboxes beside it.

They lie in python/, node/ and bash/; the part of the name before the first `_` is their group. Each
checks itself, prints the same each time, writes only into its working directory, HOME and /tmp, and
has passed in a place if it exits with 0 there and prints what it prints outside.
"""
import os
import shutil
import time

from places import PATH, bwrap, missing, runsc

LANGUAGES = {"python": ("py", ["/usr/bin/python3"]), "node": ("js", ["node"]), "bash": ("sh", ["bash"])}
HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 60


def programs(top=HERE):
    """(language, group, name, command) of each."""
    found = []
    for language, (ending, command) in LANGUAGES.items():
        for name in sorted(os.listdir(os.path.join(top, language))):
            if name.endswith("." + ending):
                path = os.path.join(top, language, name)
                found.append((language, name.split("_")[0], f"{language}/{name}", [*command, path]))
    return found


def places(args, who, shown):
    """Name and a function that makes the command line for a program in a working directory; why not, if it cannot be."""
    ours = {"HOME": "/tmp/home", "TMPDIR": "/tmp", "LANG": "C.UTF-8", "PATH": PATH}
    sandboxed = ["env", "-i", *(f"{k}={v}" for k, v in ours.items()), "sh", "-c",
                 'mkdir -p "$HOME" /tmp/work && cd /tmp/work && exec "$@"', "sh"]
    candidates = {
        "outside": lambda work: ["env", f"HOME={work}"],
        "pale": lambda work: [args.pale, "run", "--ro", shown, "--overlay", work, "--"],
        "bubblewrap": lambda work: [*bwrap(shown), *sandboxed],
        "gVisor": lambda work: [*runsc(who), *sandboxed],
    }
    found = {}
    for name, make in candidates.items():
        command = make(who.home)
        why = missing(command)
        if not why and name in ("bubblewrap", "gVisor"):
            status, out, err = who.run([*command, "echo", "up"], 30)
            if status is None:
                why = "hangs here"
            elif status != 0 or out != "up\n":
                why = f"status {status}: {(err.strip() or out.strip() or 'no message').splitlines()[-1][:110]}"
        found[name] = (make, why)
    return found


def measure(args, who, progress):
    """{"places": {place: why it could not be measured or None}, "programs": {name: {place: ...}}}"""
    shown = os.path.join(who.home, "programs")
    for language in LANGUAGES:
        shutil.copytree(os.path.join(HERE, language), os.path.join(shown, language))
    candidates = places(args, who, shown)
    result = {"places": {name: why for name, (_, why) in candidates.items()}, "programs": {}}
    wanted = programs(shown)
    for number, (language, group, name, command) in enumerate(wanted):
        progress(f"{who.name}: programs, {number + 1} of {len(wanted)}: {name}")
        row = {}
        for place, (make, why) in candidates.items():
            if why or place not in args.beside.split(","):
                continue
            work = os.path.join(who.home, "work")
            os.mkdir(work)
            os.chown(work, who.uid, who.gid)
            start = time.monotonic()
            status, out, err = who.run([*make(work), *command], SECONDS, cwd=work)
            row[place] = {"status": status, "out": out, "seconds": time.monotonic() - start}
            row[place]["passed"] = status == 0 and out == row["outside"]["out"]
            if not row[place]["passed"]:
                row[place]["said"] = err[-2000:]
            shutil.rmtree(work)
        result["programs"][name] = {"group": f"{language} {group}", "places": row}
    return result


def summary(result):
    """Counts by group and place, and what failed."""
    groups, failed, seconds = {}, {}, {}
    for name, row in result["programs"].items():
        for group in (row["group"], "all"):
            counts = groups.setdefault(group, {"programs": 0})
            counts["programs"] += 1
            for place, found in row["places"].items():
                counts[place] = counts.get(place, 0) + found["passed"]
        for place, found in row["places"].items():
            seconds[place] = seconds.get(place, 0) + found["seconds"]
            if not found["passed"]:
                failed.setdefault(place, []).append(name)
    return {"groups": groups, "failed": failed, "seconds": seconds, "not_measured": {p: w for p, w in result["places"].items() if w}}


def show(who, figures):
    names = [place for place in ("outside", "pale", "bubblewrap", "gVisor") if place in figures["seconds"]]
    print(f"\nShort programs, as {who}: passed" + " " * 8 + "".join(f"{n:>12}" for n in ["programs", *names]))
    for group, counts in sorted(figures["groups"].items(), key=lambda g: (g[0] == "all", g[0])):
        print(f"  {group:<36}{counts['programs']:>8}" + "".join(f"{counts.get(n, 0):>12}" for n in names))
    print(f"  {'seconds in all':<44}" + "".join(f"{figures['seconds'][n]:>12.1f}" for n in names))
    for place, failed in figures["failed"].items():
        print(f"  not in {place}: {', '.join(failed)}")
    for place, why in figures["not_measured"].items():
        print(f"  {place} was not measured: {why}")
