"""Collection of a written directory. usage: as test_workspace.py"""
import os
import pathlib
import socket
import subprocess
import time

from overlay import env, finish, fresh, leftovers, same, test, tool, top, tree


def collect(src, dest, limit=1 << 30, status=0):
    p = subprocess.run([tool, "collect", str(src), str(dest), str(limit)], env=env, capture_output=True, timeout=120, umask=0o022)
    assert p.returncode == status, p
    lines = p.stdout.decode(errors="surrogateescape").splitlines()
    if status:
        return p.stderr.decode(), {}
    return lines[:-1], {k: int(v) for k, v in (w.split("=") for w in lines[-1].split())}


@test("files, directories, links, names of any byte, modes and times arrive; holes stay holes")
def _():
    src, dest = fresh("src"), top / "made by collect"
    os.makedirs(src / "a/b/c")
    for name in (b"new\nline", b"\xff\xfe", b"-rf", b"x" * 255, b"a/b/c/deep"):
        with open(os.path.join(os.fsencode(src), name), "wb") as f:
            f.write(name * 3)
    (src / "x").write_text("#!/bin/sh\n")
    (src / "x").chmod(0o755)
    (src / "locked").mkdir(0o500)
    os.symlink("x", src / "l")
    os.symlink("../x", src / "a/l")
    with open(src / "sparse", "wb") as f:
        f.truncate(1 << 30)
        f.seek(1 << 29)
        f.write(b"middle")
    os.utime(src / "x", ns=(1, 1234567890123456789))
    os.utime(src / "a", ns=(1, 1234567890000000000))
    refused, report = collect(src, dest, 1 << 20)
    assert refused == [] and report["files"] == 7 and report["links"] == 2 and report["directories"] == 4, (refused, report)
    assert (dest / "sparse").stat().st_blocks < 2048 and report["bytes"] < 1 << 20
    os.unlink(src / "sparse"), os.unlink(dest / "sparse")
    same(tree(dest), tree(src))
    assert (dest / "a").stat().st_mtime_ns == 1234567890000000000
    assert dest.stat().st_uid == os.getuid()
    collect(src, dest)
    same(tree(dest), tree(src))
    assert not leftovers(dest)


@test("special files, links that lead out, setuid bits and clashing names are refused, each told, the rest arrives")
def _():
    src, dest = fresh("src"), fresh("dest")
    os.mkfifo(src / "fifo")
    s = socket.socket(socket.AF_UNIX)
    old = os.getcwd()
    os.chdir(src)
    s.bind("sock")
    os.chdir(old)
    for i, t in enumerate(("/etc/passwd", "..", "../x", "a/../../x", "/")):
        os.symlink(t, src / f"out{i}")
    (src / "suid").write_text("x")
    (src / "suid").chmod(0o6755)
    (src / "dir").write_text("a file")
    (dest / "dir").mkdir()
    (src / "file").mkdir()
    (src / "file/x").write_text("x")
    (dest / "file").write_text("a file of the host")
    (src / "ok").write_text("x")
    outside = fresh("outside")
    (src / "link").mkdir()
    (src / "link/x").write_text("x")
    (dest / "link").symlink_to(outside)
    (src / "through").write_text("new")
    (outside / "target").write_text("precious")
    (dest / "through").symlink_to(outside / "target")
    refused, report = collect(src, dest)
    told = "\n".join(refused)
    for name in ("fifo", "sock", "out0", "out1", "out2", "out3", "out4", "suid", "dir", "file", "link"):
        assert f"refused {name}:" in told, (name, told)
    assert report["refused"] == len(refused) == 11
    assert (dest / "ok").exists() and (dest / "suid").stat().st_mode & 0o7777 == 0o755
    assert (dest / "file").read_text() == "a file of the host" and (dest / "dir").is_dir()
    # The link at the destination is replaced, not written through.
    assert (outside / "target").read_text() == "precious" and (dest / "through").read_text() == "new"
    assert not (dest / "through").is_symlink() and sorted(os.listdir(outside)) == ["target"]
    if os.getuid() == 0:
        os.mknod(src / "null", 0o20666, os.makedev(1, 3))
        refused, _ = collect(src, dest)
        assert "refused null: a device" in refused and not os.path.lexists(dest / "null")


@test("more than the size is refused file by file; hard links count each time")
def _():
    src, dest = fresh("src"), fresh("dest")
    (src / "a").write_bytes(b"x" * 600000)
    for i in range(50):
        os.link(src / "a", src / f"b{i}")
    (src / "z").write_text("small")
    refused, report = collect(src, dest, 1000000)
    assert report["bytes"] == 600005 and report["refused"] == 50 and (dest / "z").exists(), report
    assert not leftovers(dest)


@test("a destination that cannot be made, or is no directory, is an error")
def _():
    src = fresh("src")
    err, _ = collect(src, top / "no/such/dir", status=1)
    assert "no/such/dir" in err
    (top / "plain").write_text("x")
    collect(src, top / "plain", status=1)


@test("deep and wide: 2,000 levels and 20,000 files, quickly")
def _():
    src, dest = fresh("src"), fresh("dest")
    old = os.getcwd()
    os.chdir(src)
    for i in range(2000):
        os.mkdir("d")
        os.chdir("d")
    open("bottom", "w").close()
    os.chdir(src)
    os.mkdir("wide")
    for i in range(20000):
        open(f"wide/{i}", "w").close()
    os.chdir(old)
    started = time.time()
    refused, report = collect(src, dest)
    print(f"# {time.time() - started:.2f} s")
    assert refused == [] and report["files"] == 20001 and report["directories"] == 2001, (refused, report)


finish()
