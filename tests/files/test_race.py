"""Directories that turn into links at every moment, and kills at every moment.
usage: test_race.py PALE TOOL PALE-PATCH RACE"""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

from overlay import Inside, cli, entries, env, finish, fresh, leftovers, pale, run, same, state, test, tool, tree, works

works()
race = os.path.abspath(sys.argv[4])
seconds = float(os.environ.get("PALE_RACE_SECONDS", "1.5"))


class Swapping:
    def __init__(self, directory, target):
        self.p = subprocess.Popen([race, str(directory), str(target)])
        while not os.path.islink(f"{directory}.link") and not os.path.islink(directory):
            time.sleep(0.001)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.p.kill()
        self.p.wait()


def with_dir(names=("d/x", "d/y", "d/sub/z")):
    d = fresh("lower")
    for n in names:
        (d / n).parent.mkdir(parents=True, exist_ok=True)
        (d / n).write_text("old")
    return d


CHANGE = """
open("d/x", "w").write("box"); os.unlink("d/y"); os.chmod("d/sub/z", 0o755); os.makedirs("d/new/deep")
for i in range(20): open(f"d/new/deep/{i}", "w").write("box")
os.symlink("x", "d/l")
"""


@test("the attack works against what follows links: so that this test can fail")
def _():
    d, outside = with_dir(), fresh("outside")
    with Swapping(d / "d", outside):
        until = time.time() + 20
        while not list(outside.iterdir()) and time.time() < until:
            try:
                with open(d / "d" / "naive", "w") as f:
                    f.write("x")
            except OSError:
                pass
    assert list(outside.iterdir()), "nothing went through the link"


@test("apply, while its directories are swapped for links that lead out")
def _():
    outside = fresh("outside")
    os.makedirs(outside / "sub")
    for n in ("x", "y", "sub/z"):
        (outside / n).write_text("precious")
        (outside / n).chmod(0o600)
    before = tree(outside)
    until, turns, done = time.time() + seconds, 0, 0
    while time.time() < until:
        d = with_dir()
        run_id, _, _ = run(d, CHANGE)
        with Swapping(d / "d", outside):
            for _ in range(5):
                p = subprocess.run([pale, "apply", "--json", *random.choice([[], ["--force-conflicts"]]), run_id], env=env,
                                   capture_output=True, timeout=60)
                assert p.returncode in (0, 1), p
                done += json.loads(p.stdout)["applied"]
                turns += 1
        same(tree(outside), before)
    assert done, "no entry was ever applied: the race tested nothing"
    print(f"# {turns} applies, {done} entries applied meanwhile")


@test("diff and its patch, while the host's directories are swapped: nothing from outside is shown")
def _():
    outside = fresh("outside")
    os.makedirs(outside / "sub")
    for n in ("x", "y", "sub/z"):
        (outside / n).write_text("SECRET of the host\n")
    d = with_dir()
    run_id, _, _ = run(d, CHANGE)
    until = time.time() + seconds
    with Swapping(d / "d", outside):
        while time.time() < until:
            for args in (["diff", "--patch"], ["diff"], ["diff", "--json"]):
                p = subprocess.run([pale, *args, run_id], env=env, capture_output=True, timeout=60)
                assert p.returncode in (0, 125), p
                assert b"SECRET" not in p.stdout, p.stdout


@test("capture, while the upper and the host's directories are swapped: nothing from outside is kept")
def _():
    outside = fresh("outside")
    os.makedirs(outside / "sub")
    for n in ("x", "y", "sub/z", "secret"):
        (outside / n).write_text("SECRET of the host\n")
    d = with_dir()
    # Swapped in the upper directory itself, as if the box were still alive; and on the host's side.
    for where in ("upper", "host"):
        with Inside(d, CHANGE) as box:
            target = f"{box.upper}/d" if where == "upper" else d / "d"
            until = time.time() + seconds / 2
            with Swapping(target, outside):
                while time.time() < until:
                    p = subprocess.run([tool, "run", box.upper, str(d), box.userns, "-"], env=env, capture_output=True,
                                       text=True, timeout=60)
                    if p.returncode == 0:
                        kept = (state / "runs" / p.stdout.split()[0] / "changes/0/contents").read_bytes()
                        assert b"SECRET" not in kept
                    else:
                        assert "changed" in p.stderr or "reading" in p.stderr, p.stderr
        if os.path.islink(d / "d"):
            os.rename(d / "d.link", d / "d2") if not os.path.islink(d / "d.link") else None


@test("collect, while the source and the destination are swapped: nothing leaves, nothing comes in")
def _():
    outside = fresh("outside")
    (outside / "secret").write_text("SECRET of the host\n")
    before = tree(outside)
    for where in ("source", "dest"):
        src, dest = fresh("src"), fresh("dest")
        for side in (src, dest):
            os.makedirs(side / "d/sub")
        for i in range(30):
            (src / f"d/sub/{i}").write_text("box")
        until = time.time() + seconds / 2
        with Swapping((src if where == "source" else dest) / "d", outside):
            while time.time() < until:
                p = subprocess.run([tool, "collect", str(src), str(dest), str(1 << 30)], env=env, capture_output=True,
                                   text=True, timeout=60)
                assert p.returncode == 0, p
        same(tree(outside), before)
        for at, _, files in os.walk(dest):
            for n in files:
                assert "SECRET" not in open(os.path.join(at, n)).read()
        assert not leftovers(dest)


@test("killed at any moment, an apply leaves whole files; the next one cleans up and finishes")
def _():
    rnd = random.Random(1)
    d = fresh("lower")
    for i in range(400):  # enough that an apply takes longer than the least delay below
        (d / f"f{i}").write_text("old" * 1000)
    for i in range(20):
        (d / f"gone{i}").write_text("old")
    run_id, _, expected = run(d, """
for i in range(400): open(f"f{i}", "w").write("new" * 1000)
for i in range(20): os.unlink(f"gone{i}")
for i in range(20): os.makedirs(f"n/{i}"); open(f"n/{i}/f", "w").write("new")
os.unlink("f59"); os.mkdir("f59"); open("f59/x", "w").write("new")
""", copy=True)
    killed = left = 0
    for turn in range(60):
        p = subprocess.Popen([pale, "apply", run_id], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rnd.uniform(0.001, 0.012))
        p.kill()
        if p.wait() == 0:
            break
        killed += 1
        found = leftovers(d)
        left += len(found)
        assert all(re.fullmatch(r"(.*/)?\.pale-apply-[0-9a-f]{16}", n) for n in found), found
        for i in range(59):
            text = (d / f"f{i}").read_text()
            assert text in ("old" * 1000, "new" * 1000), f"f{i} is torn"
    cli("apply", run_id)
    assert not leftovers(d)
    same(tree(d), tree(expected))
    assert killed >= 3, "never killed in time"
    print(f"# killed {killed} times, {left} left-overs cleaned")


@test("two applies at once: one works, the other says so, or both one after the other")
def _():
    d = with_dir()
    run_id, _, expected = run(d, CHANGE, copy=True)
    ps = [subprocess.Popen([pale, "apply", run_id], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    for p in ps:
        out, err = p.communicate(timeout=60)
        assert p.returncode == 0 or b"another command" in err, (p.returncode, out, err)
    same(tree(d), tree(expected))
    cli("audit", "verify", run_id)


finish()
