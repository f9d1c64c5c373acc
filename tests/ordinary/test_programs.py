"""The two hundred short programs of bench/ordinary in default boxes: each prints what it prints outside.

    test_programs.py PALE BENCH/ORDINARY [--outside FILE]

Some dozens of them share a box, one after the other, and two boxes run at a time. expected.json says
what they print outside; with --outside it is made anew, by running all of them there.
"""
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

pale = os.path.abspath(sys.argv[1])
bench = os.path.abspath(sys.argv[2])
sys.path.insert(0, bench)
import programs  # noqa: E402

wanted = programs.programs()
# In a box, and with --outside: each in a directory of its own, with nothing of the others left there.
DRIVER = """
import json, os, shutil, subprocess, sys, tempfile
for name, command in json.loads(sys.argv[1]):
    work = tempfile.mkdtemp()
    os.chdir(work)
    started = os.times().elapsed
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**os.environ, "HOME": work}, start_new_session=True) as p:
        try:
            out, err = p.communicate(timeout=90)
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = p.communicate()
    print(json.dumps([name, p.returncode, out.decode(errors="replace"), err.decode(errors="replace")[-1500:],
                      os.times().elapsed - started]), flush=True)
    os.chdir("/")
    shutil.rmtree(work, ignore_errors=True)
"""


def batch(rows, *before):
    """What a driver said of its programs, and what else came of it."""
    listed = json.dumps([(name, command) for _, _, name, command in rows])
    done = subprocess.run([*before, "/usr/bin/python3", "-c", DRIVER, listed], capture_output=True, text=True, env=env,
                          cwd="/", timeout=400)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")], done


with tempfile.TemporaryDirectory(prefix="pale-ordinary.") as place:
    env = {"PATH": programs.PATH, "HOME": place, "LANG": "C.UTF-8", "PALE_STATE_DIR": place + "/state"}
    if "--outside" in sys.argv:
        found, done = batch(wanted)
        bad = [row for row in found if row[1] != 0]
        assert not bad and len(found) == len(wanted), (bad, done.stderr)
        with open(sys.argv[4], "w", encoding="utf-8") as f:
            json.dump({name: out for name, _, out, *_ in found}, f, indent=0, sort_keys=True, ensure_ascii=False)
            f.write("\n")
        sys.exit(0)

    with open(bench + "/expected.json", encoding="utf-8") as f:
        expected = json.load(f)
    # Where the caller of an unprivileged test may not look, the programs are copied to where it may.
    shown = place + "/programs"
    for language in programs.LANGUAGES:
        shutil.copytree(os.path.join(bench, language), os.path.join(shown, language))
    wanted = programs.programs(shown)
    absent = {"node"} if not shutil.which("node", path=programs.PATH) else set()
    print(f"1..{len(wanted) + 1}")
    # The default limits, but for time: what is counted is the work of dozens of programs.
    box = [pale, "run", "--ro", shown, "--timeout", "350s", "--set", "limits.cpu=350s", "--set", "limits.output_total=64MiB",
           "--output", "8MiB", "--"]
    there = [row for row in wanted if row[0] not in absent]
    parts = [there[i::6] for i in range(6)]
    seen, ends = {}, []
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for found, done in pool.map(lambda rows: batch(rows, *box), parts):
            ends.append(done)
            seen |= {name: (status, out, err, seconds) for name, status, out, err, seconds in found}
    for number, (language, _, name, _) in enumerate(wanted, 1):
        if language in absent:
            print(f"ok {number} - {name} # SKIP {language} is not installed")
            continue
        status, out, err, seconds = seen.get(name, (None, "", "", 0))
        good = status == 0 and out == expected.get(name)
        print(f"{'ok' if good else 'not ok'} {number} - {name}")
        if not good:
            for line in f"status {status} after {seconds:.1f} s\ngot  {out!r}\nwant {expected.get(name)!r}\n{err}".splitlines():
                print("# " + line)
    good = all(done.returncode == 0 for done in ends)
    print(f"{'ok' if good else 'not ok'} {len(wanted) + 1} - the boxes ended by themselves")
    if not good:
        print("\n".join("# " + done.stderr[-500:].replace("\n", " ") for done in ends))
    slow = sorted(seen, key=lambda n: -seen[n][3])[:5]
    print(f"# {time.monotonic() - start:.1f} s; the slowest: " + ", ".join(f"{n} {seen[n][3]:.1f}" for n in slow))
