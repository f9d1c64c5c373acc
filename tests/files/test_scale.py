"""Time follows the changes, not the tree; deep, wide, long and sparse. usage: as test_workspace.py"""
import json
import os
import resource
import subprocess
import time

from overlay import Inside, cli, entries, env, finish, fresh, pale, run, state, test, tool, tree, works

works()


def lower(files):
    d = fresh("lower")
    for i in range(files):
        p = d / f"{i // 1000}"
        if i % 1000 == 0:
            p.mkdir()
        (p / f"{i}").touch()
    return d


def timed(d, code):
    with Inside(d, code) as box:
        best = []
        for _ in range(3):
            t = time.perf_counter()
            run_id, counts = box.capture()
            best.append(time.perf_counter() - t)
    t = time.perf_counter()
    cli("diff", run_id)
    return min(best), time.perf_counter() - t, counts


@test("ten changes in 100,000 files cost what they cost in 100")
def _():
    code = "for i in range(10): open(f'0/{i}', 'w').write('x')"
    small, small_diff, counts = timed(lower(100), code)
    large, large_diff, counts = timed(lower(100000), code)
    print(f"# capture {small * 1000:.1f} ms and {large * 1000:.1f} ms; diff {small_diff * 1000:.1f} and {large_diff * 1000:.1f}")
    assert counts["modified"] == 10
    assert large < small * 3 + 0.02 and large_diff < small_diff * 3 + 0.05


@test("20,000 new files are captured, shown and applied quickly and in little memory")
def _():
    d = fresh("lower")
    with Inside(d, "for i in range(20000):\n  if i % 500 == 0: os.mkdir(f'{i // 500}')\n  open(f'{i // 500}/{i}', 'w').write(str(i))") as box:
        t = time.perf_counter()
        run_id, counts = box.capture()
        captured = time.perf_counter() - t
    assert counts["added"] == 20040
    t = time.perf_counter()
    cli("diff", "--name-only", run_id)
    named = time.perf_counter() - t
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    print(f"# captured in {captured:.2f} s, listed in {named:.2f} s, peak of any child {peak} MiB")
    assert captured < 10 and named < 10 and peak < 200


@test("a tree of 1,500 levels, and a path that is too long")
def _():
    d = fresh("lower")
    run_id, counts, _ = run(d, """
os.mkdir("ok"); os.chdir("ok")
for i in range(1500): os.mkdir("d"); os.chdir("d")
open("bottom", "w").write("x")
""")
    assert counts["added"] == 1502 and counts["refused"] == 0, counts
    cli("apply", run_id)
    at = os.open(d / "ok", os.O_RDONLY)
    for i in range(1500):
        at2 = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = at2
    assert os.stat("bottom", dir_fd=at).st_size == 1
    os.close(at)
    subprocess.run(["rm", "-rf", d / "ok"], check=True)
    run_id, counts, _ = run(d, """
for i in range(80): os.mkdir("n" * 250); os.chdir("n" * 250)
open("bottom", "w").write("x")
""")
    assert counts["refused"] == 1 and counts["added"] < 80, counts
    assert any("too long" in e.get("why", "") for e in entries(run_id).values())


@test("a sparse file of a terabyte is kept and told in no time; one beyond all bounds is refused")
def _():
    d = fresh("lower")
    t = time.perf_counter()
    run_id, counts, _ = run(d, 'os.truncate(os.open("s", os.O_CREAT | os.O_WRONLY), 1 << 40); os.truncate(os.open("t", os.O_CREAT | os.O_WRONLY), (1 << 43) + 1)')
    assert counts["added"] == 1 and counts["refused"] == 1 and counts["bytes"] == 0, counts
    cli("apply", run_id, status=1)
    assert time.perf_counter() - t < 5
    assert (d / "s").stat().st_size == 1 << 40 and (d / "s").stat().st_blocks == 0
    p = subprocess.run([pale, "diff", "--patch", run_id], env=env, capture_output=True, timeout=20)
    assert p.returncode in (0, 1)


@test("not enough room on the host: nothing is written, and it is said before")
def _():
    if os.getuid():
        return
    d = fresh("lower")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", d], check=True)
    try:
        run_id, _, _ = run(d, 'open("big", "wb").write(b"x" * 3000000); open("small", "w").write("x")')
        p = subprocess.run([pale, "apply", run_id], env=env, capture_output=True, text=True)
        assert p.returncode == 125 and "free" in p.stderr and not list(d.iterdir()), p
    finally:
        subprocess.run(["umount", d], check=True)


finish()
