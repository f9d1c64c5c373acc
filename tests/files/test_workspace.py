"""Capture, diff, apply and discard over real overlays. usage: test_workspace.py PALE TOOL PALE-PATCH"""
import json
import os
import pathlib
import random
import shutil
import subprocess
import time

from overlay import Inside, cli, entries, env, finish, fresh, leftovers, pale, run, same, state, test, top, tree, works

works()


def lower_tree():
    d = fresh("lower")
    for name in ("a", "b", "c", "d/x", "d/y", "d/e/z", "r/1", "r/2"):
        (d / name).parent.mkdir(parents=True, exist_ok=True)
        (d / name).write_text(f"{name}\nline\nline\n")
    (d / "l").symlink_to("a")
    (d / "run.sh").write_text("#!/bin/sh\n")
    (d / "run.sh").chmod(0o755)
    return d


@test("each kind of change is told, and the workspace is as it was")
def _():
    d = lower_tree()
    before = tree(d)
    run_id, counts, _ = run(d, """
open("a", "a").write("more")
os.unlink("b")
os.chmod("c", 0o600)
shutil.rmtree("d")
os.unlink("l"); os.symlink("b", "l")
os.mkdir("n"); open("n/new", "w").write("new")
shutil.rmtree("r"); os.mkdir("r"); open("r/1", "w").write("again")
os.utime("run.sh", (1, 1))
""")
    same(tree(d), before)
    got = {p: (e["kind"], e["type"]) for p, e in entries(run_id).items()}
    want = {"a": ("modified", "file"), "b": ("deleted", "file"), "c": ("mode", "file"), "d": ("deleted", "dir"),
            "d/x": ("deleted", "file"), "d/y": ("deleted", "file"), "d/e": ("deleted", "dir"),
            "d/e/z": ("deleted", "file"), "l": ("modified", "symlink"), "n": ("added", "dir"),
            "n/new": ("added", "file"), "r/1": ("modified", "file"), "r/2": ("deleted", "file"),
            "run.sh": ("touched", "file")}
    assert got == want, got
    assert counts == {"added": 2, "modified": 3, "deleted": 7, "other": 2, "refused": 0, "bytes": 24}, counts
    text = cli("diff", run_id)
    assert " M  a | 1 +\n" in text and " D  b | 3 ---" in text and " m  c | mode 0644 -> 0600" in text, text
    assert " M  l -> b" in text and " A  n/" in text and "2 added, 3 modified" in text, text


@test("a file of which only the times changed is counted by diff, and listed by apply, which counts it too")
def _():
    d = lower_tree()
    run_id, _, _ = run(d, 'os.utime("run.sh", (1, 1)); open("a", "w").write("box")')
    text = cli("diff", run_id)
    assert "run.sh" not in text and "1 touched" in text, text
    assert cli("apply", "--dry-run", run_id) == " M  a\n t  run.sh\n 2 would be applied\n"
    assert cli("apply", run_id) == " M  a\n t  run.sh\n 2 applied\n"
    assert (d / "run.sh").stat().st_mtime == 1
    assert cli("apply", run_id) == " 0 applied, 2 there already\n"


@test("what was only opened for writing is no change")
def _():
    d = lower_tree()
    run_id, counts, _ = run(d, 'open("a", "r+").close(); os.chmod("c", 0o644)')
    assert not any(counts.values()), counts
    assert "nothing changed" in cli("diff", run_id)
    assert cli("apply", run_id) == " 0 applied\n"


@test("applied, the workspace is what the run saw: contents, modes, times, links, names")
def _():
    d = lower_tree()
    run_id, _, expected = run(d, r"""
open("a", "w").write("changed")
os.utime("a", ns=(5, 1234567890123456789))
for name in (b"new\nline", b'quo"te', b"back\\slash", b"\xff\xfe", b"-rf", b" lead", b"trail ", b"tab\t", b"x" * 255,
             "ümläut".encode(), b"esc\x1b[31m", b"a b/c d"):
    os.makedirs(os.path.dirname(name) or b".", exist_ok=True)
    open(name, "wb").write(name)
shutil.rmtree("d"); open("d", "w").write("a file where a directory was")
os.unlink("b"); os.makedirs("b/deep/er"); open("b/deep/er/f", "w").write("a directory where a file was")
os.mkdir("empty", 0o750); os.mkdir("ro"); open("ro/f", "w").write("x"); os.chmod("ro", 0o555)
open("zero", "w").close()
open("z", "w").write("secret"); os.chmod("z", 0)
os.link("a", "hard")
os.symlink("empty", "dirlink")
os.truncate("c", 0); os.truncate("c", 1 << 20)
""", copy=True)
    out = cli("apply", run_id)
    assert "\x1b" not in out
    # An unprivileged test cannot read mode 000 itself.
    for root in (d, expected):
        assert (root / "z").stat().st_mode & 0o777 == 0
        (root / "z").chmod(0o400)
    same(tree(d), tree(expected))
    assert (d / "c").stat().st_blocks * 512 < 1 << 20, "a hole became data"
    assert not leftovers(d)
    (d / "z").chmod(0)
    assert " 0 applied" in cli("apply", run_id)


def run_git(copy, run_id, expected, applied):
    """The patch was made before: here for a run whose host directory is put back first."""
    # pale diff compares with the host's directory: give it the old one back under its own inode.
    for p in list(applied.iterdir()):
        shutil.rmtree(p) if p.is_dir() and not p.is_symlink() else p.unlink()
    shutil.copytree(copy, applied, symlinks=True, dirs_exist_ok=True)
    # Git knows no empty directories, and one in the way of a file stops it.
    for at, _, _ in list(os.walk(copy, topdown=False)):
        if at != str(copy) and not os.listdir(at):
            os.rmdir(at)
    patch = cli("diff", "--patch", run_id, raw=True)
    if patch:
        p = subprocess.run(["git", "apply", "--whitespace=nowarn", "-"], input=patch, cwd=copy, env=env,
                           capture_output=True)
        # Where a link becomes a directory, git looks through the link that its own patch takes away.
        if b"beyond a symbolic link" in p.stderr:
            return
        assert p.returncode == 0, (p.stderr, patch[:2000])
    drop_dirs = lambda t: {k: (v[0], v[1] & 0o100 if v[0] == "file" else 0, *v[2:3]) for k, v in t.items() if v[0] != "dir"}
    got, want = tree(copy, times=False), tree(expected, times=False)
    links = lambda t: {k: v for k, v in t.items() if v[0] == "link"}
    same(drop_dirs(got), drop_dirs(want))
    same(links(got), links(want))


@test("random changes: capture and apply give the merged view, and the patch does too")
def _():
    seed = int(os.environ.get("PALE_SEED", random.randrange(1 << 30)))
    rounds = int(os.environ.get("PALE_ROUNDS", "6"))
    for turn in range(rounds):
        rnd = random.Random(seed + turn)
        d = fresh("lower")
        make = f"""
import random
rnd = random.Random({seed + turn})
def name():
    return rnd.choice(["a", "b c", "d\\n", "e\\"", "\\udcff", "f\\\\", "g", "h\\t", "ü", "i "])
def data():
    k = rnd.randrange(5)
    lines = [rnd.choice(["x", "yy", "zzz\\r", "", "+-", "\\\\ No newline"]) for _ in range(rnd.randrange(40))]
    return [b"", "\\n".join(lines).encode(), ("\\n".join(lines) + "\\n").encode(), rnd.randbytes(rnd.randrange(300)),
            b"\\0" + rnd.randbytes(9000)][k]
def paths(files, dirs):
    return [os.path.join(at, n) for at, ds, fs in os.walk(".") for n in (fs if files else []) + (ds if dirs else [])]
def step():
    dirs = ["."] + [p for p in paths(False, True) if not os.path.islink(p)]
    all = paths(True, True)
    new = os.path.join(rnd.choice(dirs), name())
    k = rnd.randrange(10)
    try:
        if k < 3: open(new, "wb").write(data())
        elif k == 3: os.mkdir(new)
        elif k == 4: os.symlink(rnd.choice(["nowhere", "."]), new)
        elif not all: pass
        elif k == 5:
            p = rnd.choice(all)
            shutil.rmtree(p) if os.path.isdir(p) and not os.path.islink(p) else os.unlink(p)
        elif k == 6:
            p = rnd.choice(all)
            if not os.path.islink(p) and os.path.isfile(p): os.chmod(p, rnd.choice([0o644, 0o755]))
        elif k == 7: os.rename(rnd.choice(all), new)
        elif k == 8:
            p = rnd.choice(all)
            if os.path.isfile(p) and not os.path.islink(p): open(p, "ab").write(data())
        else:
            p = rnd.choice(all)
            if os.path.isfile(p) and not os.path.islink(p):
                old = open(p, "rb").read().split(b"\\n")
                if old: old[rnd.randrange(len(old))] = b"edited"
                open(p, "wb").write(b"\\n".join(old))
    except (FileExistsError, IsADirectoryError, NotADirectoryError, FileNotFoundError):
        pass
    except OSError as e:
        if e.errno not in (18, 22, 39, 40): raise
"""
        old = os.getcwd()
        os.chdir(d)
        exec(make + "for _ in range(60): step()\n", {"os": os, "shutil": shutil})
        os.chdir(old)
        copy = fresh("copy")
        shutil.copytree(d, copy, symlinks=True, dirs_exist_ok=True)
        run_id, _, expected = run(d, make.replace(f"Random({seed + turn})", f"Random({seed + turn + 500})") +
                                  "for _ in range(60): step()\n", copy=True)
        try:
            # A link beside a file of random names may be one that leads out: none does here.
            cli("apply", run_id)
            same(tree(d), tree(expected))
            # The same by way of git, against the copy: what it keeps are contents, links and the x bit.
            run_git(copy, run_id, expected, d)
        except AssertionError as e:
            raise AssertionError(f"PALE_SEED={seed} turn {turn}: {e}") from e


@test("a patch goes through git apply byte for byte: binary, modes, links, no newline at the end")
def _():
    d = lower_tree()
    (d / "bin").write_bytes(bytes(range(256)) * 40)
    copy = fresh("copy")
    shutil.copytree(d, copy, symlinks=True, dirs_exist_ok=True)
    run_id, _, expected = run(d, r"""
open("bin", "r+b").write(b"\0\1\2changed")
open("a", "w").write("no newline")
open("b", "a").write("end\r\n")
os.chmod("c", 0o755); os.chmod("run.sh", 0o644)
os.unlink("l"); open("l", "w").write("was a link\n")
os.unlink("d/x"); os.symlink("y", "d/x")
open(b"new\n\"name\xff", "wb").write(b"\xff\n")
open("empty", "w").close()
shutil.rmtree("r")
""", copy=True)
    patch = cli("diff", "--patch", run_id, raw=True)
    assert b"GIT binary patch" in patch and b"\\ No newline at end of file" in patch and b"old mode 100644" in patch
    subprocess.run(["git", "apply", "--whitespace=nowarn"], input=patch, cwd=copy, env=env, check=True)
    mask = lambda t: {k: (v[0], v[1] & 0o100, v[2]) if v[0] == "file" else v for k, v in t.items() if v[0] != "dir"}
    same(mask(tree(copy, times=False)), mask(tree(expected, times=False)))


@test("a terminal gets escaped names and contents, and a pipe the bytes")
def _():
    import pty
    d = lower_tree()
    run_id, _, _ = run(d, r"""
open("evil\x1b]0;owned\x07", "w").write("text \x1b[2J\r\nand more\tok\n")
os.symlink("t\x1b[31m", "link\x1b[1m")
""")
    for args in (["diff", run_id], ["diff", "--patch", run_id], ["diff", "--name-only", run_id], ["diff", "-z", "--name-only", run_id],
                 ["apply", "--dry-run", run_id], ["apply", "--dry-run", "--json", run_id]):
        for term in ("dumb", "xterm"):
            main, other = pty.openpty()
            p = subprocess.Popen([pale, *args], env={**env, "TERM": term}, stdout=other, stderr=other, stdin=subprocess.DEVNULL)
            os.close(other)
            out = b""
            try:
                while chunk := os.read(main, 65536):
                    out += chunk
            except OSError:
                pass
            os.close(main)
            assert p.wait() == 0, out
            if term == "dumb":
                assert b"\x1b" not in out, (args, out)
            assert b"\x1b]0" not in out and b"\x1b[2J" not in out and b"\x07" not in out, (args, out)
    assert b"\x1b[2J\r\n" in cli("diff", "--patch", run_id, raw=True)


@test("special files, setuid bits and names out of reach are refused and told; the rest is applied")
def _():
    d = lower_tree()
    run_id, counts, _ = run(d, """
os.mkfifo("fifo")
import socket
socket.socket(socket.AF_UNIX).bind("sock")
open("suid", "w").write("x"); os.chmod("suid", 0o4755)
open("sgid", "w").write("x"); os.chmod("sgid", 0o2755)
open("ok", "w").write("x")
""")
    got = entries(run_id)
    assert counts["refused"] == 2 and got["fifo"]["why"] == "a FIFO" and got["sock"]["why"] == "a socket"
    out = cli("apply", run_id, "--all-held", status=1)
    assert "refused   suid: a setuid or setgid bit" in out.replace("\t", " ") or "suid" in out, out
    assert (d / "ok").exists()
    for name in ("fifo", "sock", "suid", "sgid"):
        assert not os.path.lexists(d / name), name
    cli("apply", run_id, "suid", "--force-conflicts", status=1)
    assert not os.path.lexists(d / "suid")
    if os.getuid() == 0:  # an unprivileged box cannot make one
        run_id, _, _ = run(d, 'os.mknod("../u/dev", 0o20666, os.makedev(1, 3)); os.mknod("../u/blk", 0o60666, os.makedev(7, 0))')
        assert entries(run_id)["dev"]["why"] == "a character device"
        cli("apply", run_id, "--all-held", status=1)
        assert not os.path.lexists(d / "dev") and not os.path.lexists(d / "blk")


@test("what changed on the host meanwhile is a conflict, told and left alone, and forced if asked")
def _():
    d = lower_tree()
    run_id, _, _ = run(d, """
for n in ("a", "b", "c", "d/x"): open(n, "w").write("box")
os.unlink("d/y"); open("new", "w").write("box"); os.symlink("a", "newlink")
os.unlink("run.sh"); shutil.rmtree("r")
open("fine", "w").write("box")
""")
    (d / "a").write_text("host")
    st = (d / "b").stat()
    (d / "b").write_text("BBB"[: st.st_size] * 9)
    os.utime(d / "b", ns=(st.st_atime_ns, st.st_mtime_ns))
    (d / "c").unlink()
    shutil.rmtree(d / "d")
    (d / "new").write_text("host")
    (d / "newlink").mkdir()
    (d / "run.sh").write_text("host")
    (d / "r/3").write_text("host")
    before = tree(d)
    got = {p: e["verdict"] for p, e in entries(run_id).items()}
    assert all(got[p] == "conflict" for p in ("a", "b", "c", "d/x", "new", "newlink", "run.sh")), got
    out = json.loads(cli("apply", "--json", run_id, status=1))
    assert out["conflicts"] == 8 and out["already"] == 1, out
    after = tree(d)
    before["fine"] = after["fine"]
    for n in ("r/1", "r/2"):
        del before[n]
    same(after, before)
    cli("apply", "--force-conflicts", run_id, status=1)
    assert (d / "a").read_text() == "box" and (d / "new").read_text() == "box" and not (d / "run.sh").exists()
    assert (d / "newlink").is_dir() and (d / "r/3").read_text() == "host"


@test("a host file that changed after the box was made is a conflict although it was captured later")
def _():
    d = lower_tree()
    started = time.time_ns()
    time.sleep(0.05)
    (d / "a").write_text("host, later")
    with Inside(d, 'open("a", "w").write("box"); open("b", "w").write("box")') as box:
        run_id, _ = box.capture(started)
    got = {p: e["verdict"] for p, e in entries(run_id).items()}
    assert got == {"a": "conflict", "b": "applicable"}, got


@test("another directory in the workspace's place is noticed")
def _():
    d = lower_tree()
    run_id, _, _ = run(d, 'open("a", "w").write("box")')
    moved = d.with_name(d.name + "-moved")
    d.rename(moved)
    d.mkdir()
    cli("apply", run_id, status=125)
    assert not list(d.iterdir())
    d.rmdir()
    d.symlink_to(moved)
    cli("apply", run_id)  # the same directory by another name
    assert (moved / "a").read_text() == "box"


@test("links that lead out are held back, by each way in which they can")
def _():
    d = lower_tree()
    out = ["/etc/passwd", "../x", "d/../../x", "d/e/../../../x", "..", "n/../..", "/"]
    fine = ["a", "./a", "d/x", "d/e", "nowhere", "."]
    run_id, _, _ = run(d, f"""
for i, t in enumerate({out!r}): os.symlink(t, f"out{{i}}")
for i, t in enumerate({fine!r}): os.symlink(t, f"fine{{i}}")
os.symlink("../a", "d/up"); os.symlink("../../a", "d/upup")
""")
    got = entries(run_id)
    for i in range(len(out)):
        assert got[f"out{i}"]["verdict"] == "held" and got[f"out{i}"]["class"] == "link", out[i]
    for i in range(len(fine)):
        assert got[f"fine{i}"]["verdict"] == "applicable", fine[i]
    assert got["d/up"]["verdict"] == "applicable" and got["d/upup"]["verdict"] == "held"
    cli("apply", run_id, status=1)
    assert not os.path.lexists(d / "out0") and os.path.lexists(d / "fine0")
    cli("apply", run_id, "out0")
    assert os.readlink(d / "out0") == "/etc/passwd"


@test("a link on the host where a directory was is not followed")
def _():
    d = lower_tree()
    outside = fresh("outside")
    run_id, _, _ = run(d, 'open("d/x", "w").write("box"); open("d/new", "w").write("box"); os.mkdir("d/sub"); open("d/sub/f", "w").write("box")')
    shutil.rmtree(d / "d")
    (d / "d").symlink_to(outside)
    cli("apply", run_id, status=1)
    cli("apply", run_id, "--force-conflicts", "--all-held", status=1)
    assert not list(outside.iterdir())


@test("hard links: in the box they become files, on the host they are not written through")
def _():
    d = lower_tree()
    other = fresh("outside")
    os.link(d / "a", other / "a")
    os.link(d / "c", other / "c")
    os.link(d / "run.sh", other / "run.sh")
    run_id, _, _ = run(d, 'open("a", "w").write("box"); os.chmod("c", 0o777); os.utime("run.sh", (1, 1)); open("x", "w").write("x" * 100000)\nfor i in range(50): os.link("x", f"x{i}")')
    assert (state / "runs" / run_id / "changes/0/contents").stat().st_size < 200000, "kept once"
    cli("apply", run_id, status=1)
    assert (d / "a").read_text() == "box" and (other / "a").read_text() == "a\nline\nline\n"
    assert (other / "c").stat().st_mode & 0o777 == 0o644
    assert (d / "x7").read_text() == "x" * 100000 and (d / "x7").stat().st_nlink == 1


@test("PATH limits what is shown and applied; a wrong one is said before anything is done")
def _():
    d = lower_tree()
    run_id, _, _ = run(d, 'os.makedirs("n/m"); open("n/m/f", "w").write("1"); open("n/g", "w").write("1"); open("a", "w").write("1"); open("d/x", "w").write("1")')
    cli("apply", run_id, "a", "nothing", status=2)
    assert (d / "a").read_text() != "1"
    assert set(entries(run_id, "n/m")) == {"n", "n/m", "n/m/f"}
    cli("apply", run_id, "n/m")
    assert (d / "n/m/f").exists() and not (d / "n/g").exists()
    cli("apply", run_id, "x", cwd=d / "d")
    assert (d / "d/x").read_text() == "1" and (d / "a").read_text() != "1"
    cli("apply", run_id, d / "a")
    assert (d / "a").read_text() == "1"
    assert cli("diff", "--name-only", "-z", run_id, "n/g", raw=True) == b"n\0n/g\0"
    cli("apply", "last", "./n/g")
    assert " 0 applied" in cli("apply")


@test("apply and discard are in the log, which still verifies; discarded is gone")
def _():
    d = lower_tree()
    run_id, _, _ = run(d, 'open("a", "w").write("box"); open(".envrc", "w").write("box")')
    cli("apply", run_id, "--dry-run", status=1)
    cli("apply", run_id, status=1)
    cli("discard", run_id, status=2)
    assert json.loads(cli("discard", "--yes", "--json", run_id)) == {"run": run_id, "discarded": True}
    events = [json.loads(line) for line in (state / "runs" / run_id / "audit.jsonl").read_text().splitlines()]
    names = [e["event"] for e in events]
    assert names == ["box.start", "box.end", "apply.refused", "apply.done", "discard.done"], names
    assert events[3]["applied"] == 1 and events[3]["remaining"] == 1
    assert events[3]["paths"] == ["a"] and events[2]["path"] == ".envrc" and events[2]["why"].startswith("held")
    cli("audit", "verify", run_id)
    assert not (state / "runs" / run_id / "changes").exists()
    assert "discarded" in subprocess.run([pale, "diff", run_id], env=env, capture_output=True, text=True).stderr
    assert (d / "a").read_text() == "box"


@test("a partial capture is no change, and goes with the rest")
def _():
    d = lower_tree()
    run_id, _, _ = run(d, 'open("a", "w").write("box")')
    changes = state / "runs" / run_id / "changes"
    (changes / "1.partial").mkdir()
    (changes / "1.partial/contents").write_text("x")
    assert list(entries(run_id)) == ["a"]
    cli("discard", "-y", run_id)
    assert not changes.exists()


@test("all of it through pale run: two workspaces, a hidden file, modes that forbid reading")
def _():
    one, two = lower_tree(), fresh("second")
    (two / "f").write_text("old")
    (two / "secret").write_text("SECRET")
    before = tree(one), tree(two)
    p = subprocess.run([pale, "run", "--overlay", one, "--overlay", two, "--hide", two / "secret", "--", "sh", "-c",
                        f"cat {two}/secret; echo new >{one}/new; rm {one}/b; echo x >{two}/f; chmod 000 {two}/f {one}/c;"
                        f"mkdir -p {one}/.git/hooks; echo evil >{one}/.git/hooks/pre-commit"],
                       env=env, capture_output=True, text=True, timeout=60, cwd=one)
    assert "SECRET" not in p.stdout
    if p.returncode == 125:
        assert "userns" not in os.environ.get("PALE_MUST_WORK", ""), p.stderr
        print("# SKIP: no box can be made here: " + p.stderr.replace("\n", " "))
        return
    same(tree(one), before[0])
    same(tree(two), before[1])
    overlays = json.loads(cli("diff", "--json"))["overlays"]
    assert [o["root"] for o in overlays] == [str(one), str(two)]
    got = {o["n"]: {e["path"]: e["verdict"] for e in o["entries"]} for o in overlays}
    assert got[0] == {".git": "applied", ".git/hooks": "applied", ".git/hooks/pre-commit": "held", "b": "applicable",
                      "c": "applicable", "new": "applicable"} | {p: got[0][p] for p in (".git", ".git/hooks")}, got
    assert got[1] == {"f": "applicable"}, got
    cli("apply", status=1)
    (two / "f").chmod(0o600)
    assert (two / "f").read_text() == "x\n" and (one / "new").read_text() == "new\n" and not (one / "b").exists()
    (two / "f").chmod(0)
    assert not (one / ".git").exists() and (two / "secret").read_text() == "SECRET"
    assert (one / "c").stat().st_mode & 0o777 == 0 and (one / "new").stat().st_uid == os.getuid()
    def remaining():
        lines = [json.loads(line) for line in cli("audit", "show", "--json", "last").splitlines()]
        return [e["remaining"] for e in lines if e["event"] == "apply.done"][-1]

    assert remaining() == 3  # the hook, and the two directories made for it
    cli("apply", "last", two / "f")
    assert remaining() == 3
    cli("apply", "last", ".git/hooks/pre-commit", cwd=one)
    assert remaining() == 0
    cli("audit", "verify", "last")
    cli("discard", "--yes")


@test("a file mounted over on the host is not written through")
def _():
    if os.getuid():
        return
    d = lower_tree()
    outside = fresh("outside")
    run_id, _, _ = run(d, 'open("d/x", "w").write("box"); open("a", "w").write("box")')
    subprocess.run(["mount", "--bind", outside, d / "d"], check=True)
    try:
        out = json.loads(cli("apply", "--json", run_id, status=1))
        assert out["refused"] == 1 and out["applied"] == 1, out
    finally:
        subprocess.run(["umount", d / "d"], check=True)
    assert not list(outside.iterdir())


finish()
