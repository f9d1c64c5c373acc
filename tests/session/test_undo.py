#!/usr/bin/python3
"""The files of a session's executions: what each changed, undo and rollback, and what a hostile box tries with them.

usage: test_undo.py PALE PALE-BOX TEST-SESSION-NEW ordinary|hostile
"""
from sessions import *


def only(which):
    """Two tests in one file: what is quick, and what takes a while."""
    return case if sys.argv[4] == which else lambda function: function


# What is there, from inside: type, mode, links, contents, times of files.
LOOK = """
def look():
    import hashlib, os, stat
    found = {}
    for top in ('/work', '/home/agent', '/tmp'):
        for dirpath, dirs, files in os.walk(top):
            for name in dirs + files:
                path = os.path.join(dirpath, name)
                st = os.lstat(path)
                kind = stat.S_IFMT(st.st_mode)
                said = [oct(st.st_mode)]
                if kind == stat.S_IFREG:
                    try:
                        said += [hashlib.sha256(open(path, 'rb').read()).hexdigest()[:8], st.st_mtime_ns]
                    except OSError:
                        said += [st.st_size]
                elif kind == stat.S_IFLNK:
                    said += [os.readlink(path)]
                elif kind == stat.S_IFDIR and name != 'hidden':
                    said += [st.st_mtime_ns]
                found[path] = said
    return sorted(found.items())
import os, shutil, stat, sys
"""


def workspace(name):
    work = os.path.join(place, name)
    for d in ("", "/d", "/d/e", "/gone", "/gone/deep", "/hidden"):
        os.mkdir(work + d)
    for f in ("a", "b", "script", "d/x", "d/y", "d/e/z", "gone/1", "gone/deep/2", "hidden/h"):
        with open(f"{work}/{f}", "w") as out:
            out.write(f"host {f}\n")
    os.chmod(work + "/script", 0o755)
    os.symlink("a", work + "/link")
    if root:
        # As a user's own would be.
        subprocess.run(["chown", "-Rh", "1000:1000", work], check=False)
    return work


def session(name, **more):
    work = workspace(name)
    s = Session(files=[{"path": "/work", "from": work, "access": "overlay"}, {"path": "/work/hidden", "access": "hide"}], **more)
    s.run(LOOK)
    s.run("os.chdir('/work')")
    s.host, s.host_was = work, host_tree(work)
    return s


def host_tree(work):
    return sorted((os.path.relpath(os.path.join(d, f), work), open(os.path.join(d, f)).read()) for d, _, files in os.walk(work) for f in files)


def files(answer):
    """{path: change} of an execution's end."""
    return {f.get("path", f.get("path_base64")): f["change"] for f in answer["result"]["files"]}


def state_of(s):
    return s.run("look()")["events"][-1]["data"]["text/plain"]


def started(answer):
    return next(e for e in answer["events"] if e["type"] == "started")


def keepers(s):
    found = []
    for p in descendants(s.supervisor):
        try:
            if open(f"/proc/{p}/comm").read() == "pale-keeper\n" and start_of(p):
                found.append(p)
        except OSError:
            pass
    return found


def b64(data):
    return base64.b64encode(data).decode()


def diff_of(s):
    """What `pale diff` prints when the session has ended."""
    s.end()
    within(20, lambda: any(e["event"] == "workspace.captured" for e in s.log()))
    p = subprocess.run([pale, "diff", s.id], env=env, capture_output=True, text=True, check=False)
    return p.stdout + p.stderr


CHANGES = """
open('a', 'w').write('changed')
os.unlink('b')
open('new', 'w').write('new')
os.rename('d/x', 'd/moved')
open('d/y', 'r+').write('HOST')            # as long as before
os.chmod('script', 0o600)
os.unlink('link'); os.symlink('/etc/passwd', 'link')
shutil.rmtree('gone')
os.mkdir('made'); os.mkdir('made/in'); open('made/in/f', 'w').write('x')
shutil.rmtree('d/e'); open('d/e', 'w').write('a file now')
open('/home/agent/h', 'w').write('h')
open('/tmp/t', 'w').write('t')
"""


@only("ordinary")
def test_list():
    s = session("list")
    a = s.run("1 + 1")
    check("an execution that changes nothing says so", a["result"]["files"] == [] and started(a)["files"] is True and not keepers(s), a)
    a = s.run(CHANGES)
    want = {"/work/a": "changed", "/work/b": "deleted", "/work/new": "added", "/work/d/x": "deleted", "/work/d/moved": "added",
            "/work/d/y": "changed", "/work/script": "changed", "/work/link": "changed", "/work/gone": "deleted", "/work/made": "added",
            "/work/made/in": "added", "/work/made/in/f": "added", "/work/d/e": "changed", "/home/agent/h": "added", "/tmp/t": "added"}
    check("one that changes files lists them", files(a) == want, (a["err"], {k: (files(a).get(k), want.get(k)) for k in files(a) | want if files(a).get(k) != want.get(k)}))
    told = {f["path"]: f for f in a["result"]["files"]}
    check("with type, size and mode", told["/work/new"] == {"path": "/work/new", "change": "added", "type": "file", "size": 3, "mode": 0o644}
          and told["/work/link"]["type"] == "link" and told["/work/made"]["type"] == "directory" and told["/work/script"]["mode"] == 0o600, told)
    check("the next one only its own", files(s.run("open('new', 'a').write('er'); open('a').read()")) == {"/work/new": "changed"})
    check("also within the same moment, and of the same size", all(files(s.run(f"open('new', 'w').write('{i:04}')")) == {"/work/new": "changed"} for i in range(20)))
    check("what is only read, or opened for writing, is no change", files(s.run("open('d/y').read(); open('made/in/f', 'r+').close(); open('script', 'r+').close()")) == {})
    a = s.run("open('plain', 'w').write('x')", rollback=False)
    check("without rollback they are listed, too", files(a) == {"/work/plain": "added"} and started(a)["files"] is False, a)
    check("one after the other", files(s.run("open('plain2', 'w').write('x')", rollback=False)) == {"/work/plain2": "added"})
    s("files.write", path="/work/owner", text="x")
    check("what the owner wrote is no execution's", files(s.run("open('mine', 'w').write('x')")) == {"/work/mine": "added"})
    check("names are bytes", files(s.run("open(b'n\\nl', 'w'); open(b'\\xff', 'w')")) == {"/work/n\nl": "added", b64(b"/work/\xff"): "added"})
    a = s.run("for i in range(1500): open(f'/tmp/many{i}', 'w').write('x')")
    check("of very many the list has a thousand, and how many more", len(a["result"]["files"]) == 1000 and a["result"]["files_more"] == 500, a["result"].get("files_more"))
    e = [x for x in s.log() if x["event"] == "exec.end"][-1]
    check("and the log a hundred", len(e["files"]) == 100 and e["files_more"] == 1400, e.get("files_more"))
    check("nothing of it is on the host", host_tree(s.host) == s.host_was)
    s.end()


@only("ordinary")
def test_undo():
    s = session("undo")
    for round in ("of what lies on the host", "of what the session wrote"):
        before = state_of(s)
        s.run("for f in ('b', 'd/x', 'made', 'd/moved', 'gone', 'd/e', 'link'):\n    shutil.rmtree(f) if os.path.isdir(f) and not os.path.islink(f) else os.path.lexists(f) and os.unlink(f)\nos.mkdir('gone'); os.mkdir('d/e')\nfor f in ('b', 'd/x'): open(f, 'w').write(f)\nos.symlink('a', 'link')" if "session" in round else "")
        a = s.run("v = 1\n" + CHANGES)
        changed = state_of(s)
        s.run("pass")
        check("it changed something " + round, changed != before and not a["err"], a["err"])
        # Back to before the last execution, which was none of those that changed anything.
        check("undo of one that changed nothing brings nothing back", s("session.undo")["files_back"] == 0 and state_of(s) == changed)
        # Now the way back, by hand: the state to go to is what the session has.
        s.run("v = 2")
        a = s.run("""
for name in ('a', 'new', 'd/moved', 'script', 'made/in/f', '/tmp/t'):
    os.path.lexists(name) and os.unlink(name)
shutil.rmtree('made'); os.mkdir('made'); os.mkdir('made/other', 0o700)
os.chmod('d', 0o500); os.chmod('/tmp/..' and '/home/agent/h', 0)
os.mkdir('gone'); open('gone/1', 'w').write('again')
v = 3
""")
        middle = files(a)
        u = s("session.undo")
        check("undo says what it brought back " + round, u["undone"] == a["execution"] and u["files_failed"] == 0 and u["files_back"] == len(middle) and {f["path"] for f in u["files"]} == set(middle), (len(middle), u))
        now = state_of(s)
        check("all is as it was " + round, now == changed, "\n".join(sorted(set(now.split("), (")) ^ set(changed.split("), (")))))
        check("variables, too", s.run("v")["events"][-1]["data"]["text/plain"] == "2")
        s.run(LOOK + "os.chdir('/work')")
    s.end()
    s = session("undo2")
    before = state_of(s)
    s.run(CHANGES)
    u = s("session.undo")
    check("undo goes once", (e := s.refused("session.undo")) and "undone already" in e.message, e)
    now = state_of(s)
    check("files of the host's come back as they are there", now == before and u["files_failed"] == 0, "\n".join(sorted(set(now.split("), (")) ^ set(before.split("), ("))) + [str(u)]))
    e = [x for x in s.log() if x["event"] == "session.undone"]
    check("the log says how many", e and e[-1]["files_back"] == u["files_back"] > 10, e)
    check("the host has what it had", host_tree(s.host) == s.host_was)
    out = diff_of(s)
    check("and pale diff shows nothing of it", "nothing changed" in out, out)


@only("ordinary")
def test_rollback():
    s = session("rollback", session={"kernel": "python", "grace": "100ms"})
    s.run("v = 1; open('kept', 'w').write('1')")
    before = state_of(s)
    stuck = "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\nopen('kept', 'w').write('2'); os.unlink('a'); v = 2\ntime.sleep(1000)"
    a = s.run(stuck, timeout_ms=500)
    r = a["result"]
    check("one that does not end is taken back with its files", (r["outcome"], r["how"], r["state"], r["files_back"], r["files_failed"]) == ("timeout", "rollback", "held", 2, 0)
          and files(a) == {"/work/kept": "changed", "/work/a": "deleted"} and state_of(s) == before, r)
    a = s.run("open('kept', 'w').write('3'); os.kill(os.getpid(), 9)")
    check("and one that dies", a["result"]["outcome"] == "died" and a["result"]["files_back"] == 1 and state_of(s) == before, a["result"])
    a = s.run("open('kept', 'w').write('4'); os.kill(os.getpid(), 9)", rollback=False)
    check("not without rollback", a["result"]["state"] == "fresh" and "files_back" not in a["result"] and files(a) == {"/work/kept": "changed"}
          and s.run("open('/work/kept').read()")["events"][-1]["data"]["text/plain"] == "'4'", a["result"])
    for i in range(5):
        a = s.run("import os; os.chdir('/work'); open('one more', 'w').write('x'); os.kill(os.getpid(), 9)")
    check("again and again", a["result"]["files_back"] == 1 and s.run("os.path.exists('/work/one more')")["events"][-1:] != [] and len(keepers(s)) <= 1, a["result"])
    s.end()
    s = session("memory", limits={"memory": "256MiB"})
    s.run("open('kept', 'w').write('1'); big = os.urandom(8 << 20); open('/tmp/big', 'wb').write(big)")
    before = state_of(s)
    a = s.run("open('kept', 'w').write('2'); os.unlink('/tmp/big'); x = [os.urandom(1 << 20) for _ in range(600)]")
    r = a["result"]
    if r["state"] == "held":
        check("and one for which there is no memory", (r["outcome"], r["files_back"], r["files_failed"]) == ("memory", 2, 0) and state_of(s) == before, r)
    else:
        skip("one for which there is no memory", f"here its state is not held: {r['outcome']}, {r['state']}")
    s.end()


@only("ordinary")
def test_nested():
    """Places in an overlay, whose mount points are not on the host."""
    work = workspace("nested")
    # What is above a mount point, and not on the host, is not the box's user's where that is not the caller.
    for way in ("d",) if root else ("d", "way"):
        s = Session(files=[{"path": "/work", "from": work, "access": "overlay"}, {"path": f"/work/{way}/out", "access": "write"}])
        s.run(f"import os; os.chdir('/work/{way}'); there = lambda: (sorted(os.listdir('.')), sorted(os.listdir('out')), oct(os.stat('.').st_mode))")
        before = s.run("there()")["events"][-1]["data"]["text/plain"]
        a = s.run("open('only', 'w').write('1'); os.chmod('.', 0o700)")
        u = s("session.undo")
        now = s.run("there()")["events"][-1]["data"]["text/plain"]
        check(f"what is new beside a mount goes, and that stays ({way})", files(a) == {f"/work/{way}": "changed", f"/work/{way}/only": "added"}
              and u["files_failed"] == 0 and now == before, (a["result"], u, now))
        s.run("open('kept', 'w').write('1'); open('out/f', 'w').write('1')")
        before = s.run("there()")["events"][-1]["data"]["text/plain"]
        a = s.run("open('new', 'w').write('2'); open('out/f', 'w').write('2'); os.mkdir('out/d'); os.unlink('kept')")
        check(f"changes in the mount and beside it are told apart ({way})", files(a) == {f"/work/{way}/new": "added", f"/work/{way}/out/f": "changed", f"/work/{way}/out/d": "added",
              f"/work/{way}/kept": "deleted"}, a["result"])
        u = s("session.undo")
        now = s.run("there()")["events"][-1]["data"]["text/plain"]
        check(f"and all go back ({way})", u["files_failed"] == 0 and u["files_back"] == 4 and now == before and s.run("open('out/f').read()")["events"][-1]["data"]["text/plain"] == "'1'", (u, now, before))
        a = s.run(f"import shutil; shutil.rmtree('/work/{way}', True)")
        u = s("session.undo")
        now = s.run("there()")["events"][-1]["data"]["text/plain"]
        check(f"also when all was removed that could be ({way})", u["files_failed"] == 0 and now == before and s.run("open('out/f').read()")["events"][-1]["data"]["text/plain"] == "'1'", (u, now, before))
        s.end()


@only("ordinary")
def test_room():
    """What is kept is memory that the box does not pay for, and what comes back is memory that it does."""
    with open(pale, "rb") as program:
        sanitized = b"__asan_init" in program.read()
    s = session("quarter", limits={"memory": "192MiB"})
    fill = "for _ in range({}): os.write(f, b'x' * (1 << 20))"
    s.run("f = os.open('/tmp/large', os.O_CREAT | os.O_WRONLY)\n" + fill.format(40))
    a = s.run("1")
    check("less than a quarter of the box's memory is kept", started(a)["files"] is True, a["events"])
    s.run(fill.format(12))
    a = s.run("1")
    check("more is not, though there would be room", started(a)["files"] is False and "quarter" in started(a)["files_why"], a["events"])
    s.run("os.ftruncate(f, 0); os.close(f); f = os.open('/tmp/again', os.O_CREAT | os.O_WRONLY)\n" + fill.format(40))
    a = s.run("g = os.open('/tmp/again', os.O_WRONLY)\nfor _ in range(40): os.write(g, b'y' * (1 << 20))\nos.close(g)")
    k = keepers(s)
    rss = int(next(line for line in open(f"/proc/{k[0]}/status") if line.startswith("RssAnon")).split()[1]) if k else 0
    check("before and after together are no more", started(a)["files"] is True and files(a) == {"/tmp/again": "changed"} and (rss < 64 << 10 or sanitized), (rss, a["result"]))
    a = s.run("1")
    check("and the next can go back, too", started(a)["files"] is True, a["events"])
    k = keepers(s)
    limit = next(line for line in open(f"/proc/{k[0]}/limits") if line.startswith("Max data size")).split()[3] if k else "unlimited"
    check("the keeper has a limit of its own", limit != "unlimited" or sanitized, limit)
    s.end()
    s = session("sparse")
    sparse = "f = os.open('/tmp/sparse', os.O_CREAT | os.O_RDWR); os.ftruncate(f, {} << 10); os.close(f)"
    s.run(sparse.format(1000))
    a = s.run("os.unlink('/tmp/sparse')")
    u = s("session.undo")
    check("a small sparse file comes back", started(a)["files"] is True and u["files_back"] == 1 and u["files_failed"] == 0
          and s.run("import os; os.stat('/tmp/sparse').st_size")["events"][-1]["data"]["text/plain"] == str(1000 << 10), u)
    s.run(sparse.format(3000))
    a = s.run("1")
    check("holes that cost the box nothing are not kept", started(a)["files"] is False and "holes" in started(a)["files_why"], a["events"])
    s.run("os.unlink('/tmp/sparse')\nfor i in range(100): open(f'/tmp/s{i}', 'w').truncate(60000)")
    a = s.run("1")
    check("nor in many small files", started(a)["files"] is False and "holes" in started(a)["files_why"], a["events"])
    s.end()
    work = workspace("large")
    with open(work + "/large", "wb") as out:
        os.posix_fallocate(out.fileno(), 0, 160 << 20)
    for i in range(3):
        os.link(work + "/large", f"{work}/gone/deep/large{i}")
    os.mkdir(work + "/fifo")
    os.mkfifo(work + "/fifo/f")
    if root:
        subprocess.run(["chown", "-Rh", "1000:1000", work], check=False)
    s = Session(files=[{"path": "/work", "from": work, "access": "overlay"}], limits={"memory": "128MiB"})
    for what in ("shutil.rmtree('/work/gone')", "os.unlink('/work/large')"):
        a = s.run("import os, shutil; " + what)
        u = s("session.undo")
        check(f"what the box has no memory for does not come back, and that is said ({what})", u["files_back"] is None and "memory" in u["files_why"] and len(u["files"]) == 1
              and "error" in u["files"][0], u)
    s.run("import os, shutil; shutil.rmtree('/work/fifo')")
    u = s("session.undo")
    check("a directory of which something failed has not come back", u["files_failed"] == 1 and u["files_back"] == 0 and "error" in u["files"][0]
          and s.run("import os; os.path.isdir('/work/fifo')")["events"][-1]["data"]["text/plain"] == "True", u)
    s.end()


@only("hostile")
def test_not_kept():
    s = session("large")
    a = s.run("f = open('/tmp/big', 'wb')\nfor i in range(70): f.write(os.urandom(1 << 20))\nf.close(); del f")
    check("what is large is listed", files(a) == {"/tmp/big": "added"} and started(a)["files"] is True, a["result"]["files"])
    a = s.run("v = 1; open('x', 'w').write('x')")
    check("before the next it is said that files cannot go back", started(a)["files"] is False and "larger" in started(a)["files_why"]
          and started(a)["rollback"] is True and "larger" in a["result"]["files_not_kept"] and files(a) == {"/work/x": "added"}, a["events"])
    u = s("session.undo")
    check("and only variables do", u["files_back"] is None and "larger" in u["files_why"] and s.run("os.path.exists('/work/x'), 'v' in globals()")["events"][-1]["data"]["text/plain"] == "(True, False)", u)
    s.run("os.unlink('/tmp/big')")
    a = s.run("f = os.open('/tmp/sparse', os.O_CREAT | os.O_RDWR); os.ftruncate(f, 100 << 20); os.close(f)")
    a = s.run("1")
    check("a sparse file is as large as it says", started(a)["files"] is False and "larger" in started(a)["files_why"], a["events"])
    s.run("os.unlink('/tmp/sparse')")
    check("when it is gone, all is as before", started(s.run("1"))["files"] is True)
    s.run("open('closed', 'w').write('x'); os.chmod('closed', 0)")
    a = s.run("os.chmod('closed', 0o600)")
    check("what cannot be read cannot be kept", started(a)["files"] is False and "mode" in started(a)["files_why"], a["events"])
    s.end()
    s = session("many")
    a = s.run("os.mkdir('/tmp/m')\nfor i in range(20000): open(f'/tmp/m/{i}', 'w').close()")
    check("of 20000 files it is said that they are too many", a["result"]["files"] is None and "8192" in a["result"]["files_why"], a["result"].get("files_why"))
    a = s.run("open('x', 'w').write('x')")
    check("and that nothing goes back", started(a)["files"] is False and a["result"]["files"] is None and "8192" in a["result"]["files_not_kept"], a["events"])
    s.run("shutil.rmtree('/tmp/m')")
    check("until they are gone", files(s.run("open('y', 'w').write('x')")) == {"/work/y": "added"})
    a = s.run("d = '/tmp'\nfor i in range(1500):\n    d = d + '/dddd'\n    try: os.mkdir(d)\n    except OSError: break\nelse: i = 0\ni")
    for i in range(3):
        s.run("os.chdir(d.rsplit('/', 1)[0]); b = os.open('.', os.O_RDONLY)\nfor i in range(500): os.mkdir('dddd', dir_fd=b); n = os.open('dddd', os.O_RDONLY, dir_fd=b); os.close(b); b = n\nos.close(b); os.chdir('/work')")
    a = s.run("open('z', 'w').write('x')")
    check("directories that are too deep are survived", a["result"]["outcome"] == "ok" and (a["result"]["files"] is None and "deep" in a["result"]["files_why"] or files(a) == {"/work/z": "added"}), a["result"])
    s.end()


@only("hostile")
def test_attacks():
    """Whatever the box does meanwhile: it gains nothing, the session goes on, and nothing leaves its places."""
    s = session("attack")
    s.run("os.mkdir('/tmp/out'); open('/tmp/out/x', 'w').write('outside'); open('d/x', 'w').write('mine'); os.mkdir('t'); open('t/x', 'w').write('mine')")
    # Links in the way: to another place, to the host's files, upwards.
    for target in ("/tmp/out", "/usr", "/proc/self/cwd/../..", "../hidden"):
        a = s.run(f"shutil.rmtree('t'); os.symlink({target!r}, 't')")
        u = s("session.undo")
        check(f"a link to {target} in the place of a directory is replaced, not followed", u["files_failed"] == 0 and s.run("open('/work/t/x').read(), open('/tmp/out/x').read()")["events"][-1]["data"]["text/plain"]
              == "('mine', 'outside')", u)
    a = s.run("os.unlink('t/x'); os.mkfifo('t/x'); os.mkfifo('fifo')")
    begun = time.monotonic()
    u = s("session.undo")
    check("a FIFO in the place of a file holds nobody up", u["files_failed"] == 0 and time.monotonic() - begun < 3 and s.run("open('/work/t/x').read()")["events"][-1]["data"]["text/plain"] == "'mine'", u)
    s.run("os.mkfifo('fifo2')")
    s.run("os.unlink('fifo2')")
    u = s("session.undo")
    check("a FIFO itself does not come back, and that is said", u["files_failed"] == 1 and u["files_back"] == 0 and u["files"][0]["error"], u)
    # Hard links: no writing through one name into another.
    s.run("open('one', 'w').write('one'); open('two', 'w').write('two')")
    a = s.run("os.unlink('one'); os.link('two', 'one')")
    u = s("session.undo")
    check("what has become another name of a file does not write to that", s.run("open('/work/one').read(), open('/work/two').read()")["events"][-1]["data"]["text/plain"] == "('one', 'two')", u)
    # Something in the background swaps the directory for a link while files are brought back.
    s.run("""
os.mkdir('/work/t/s'); os.mkdir('/tmp/out/s')
for i in range(1500):
    open(f'/work/t/s/{i}', 'w').write('mine')
    open(f'/tmp/out/s/{i}', 'w').write('outside')
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        import time
        for _ in range(4):
            while not os.path.exists('/tmp/go'):
                time.sleep(0.001)
            until = time.monotonic() + 0.5
            while time.monotonic() < until:
                try:
                    os.rename('/work/t', '/work/aside'); os.symlink('/tmp/out', '/work/t')
                    time.sleep(0.0005)
                    os.unlink('/work/t'); os.rename('/work/aside', '/work/t')
                    time.sleep(0.0005)
                except OSError:
                    pass
    os._exit(0)
os.wait()
""")
    came = left = 0
    for _ in range(4):
        s.run("import os, shutil, time\nfor i in range(1500): open(f'/work/t/s/{i}', 'r+').write('othe')\nopen('/tmp/go', 'w').close(); time.sleep(0.02)")
        u = s("session.undo")
        came += u["files_back"] or 0
        left += u["files_failed"] if u["files_back"] is not None else 0
        time.sleep(0.8)
        s.run("for d in ('/work/t', '/work/aside'):\n    if os.path.islink(d): os.unlink(d)\nos.makedirs('/work/t/s', exist_ok=True)\nfor i in range(1500):\n    open(f'/work/t/s/{i}', 'w').write('mine')\nshutil.rmtree('/work/aside', True)")
    out = s.run("import os; {open(f'/tmp/out/s/{i}').read() for i in range(1500)}")["events"][-1]["data"]["text/plain"]
    check("a race with links leads nowhere", out == "{'outside'}" and host_tree(s.host) == s.host_was, (out, came, left))
    print(f"# {came} were brought back in the middle of it, {left} not")
    s.end()


@only("ordinary")
def test_dies_between():
    """What the interpreter's end between two executions takes along, and whether that is said."""
    def die(s):
        time.sleep(0.3)  # it gets ready for the next one meanwhile
        leaf = [p for p in descendants(s.pid) if not descendants(p)]
        before = s("session.show")["executions"]
        os.kill(leaf[-1], signal.SIGKILL)
        within(5, lambda: not start_of(leaf[-1]))
        return before

    def notes(a):
        return " ".join(e["text"] for e in a["events"] if e["type"] == "note")

    s = session("between")
    s.run("x = 1; open('f', 'w').write('1')")
    s.run("x = 2; open('f', 'w').write('2')")
    die(s)
    a = s.run("print(x, open('f').read())")
    check("where its state was held, nothing is lost", a["out"] == "2 2\n" and "nothing is lost" in notes(a), (a["out"], notes(a)))
    s.run("x = 3; open('f', 'w').write('3')")
    die(s)
    u = s("session.undo")
    check("and the last one can still be undone, with its files", u["files_back"] == 1 and s.run("print(x, open('f').read())")["out"] == "2 2\n", u)
    s.run("x = 4; open('f', 'w').write('4'); keep = open('g', 'w')")
    die(s)
    e = s.refused("session.undo")
    check("where only the one before it was: no undo", e and e.code == "conflict" and "ended since" in e.message, e)
    a = s.run("print(x, open('f').read())")
    check("variables are as before it, files are not, and that is said", a["out"] == "2 4\n" and "files as it left them" in notes(a), (a["out"], notes(a)))
    s.run("keep = open('g', 'w')")
    s.run("x = 5")
    die(s)
    a = s.run("print('x' in globals(), open('f').read())")
    check("where none was: a fresh one", a["out"] == "False 4\n" and "fresh" in notes(a), (a["out"], notes(a)))
    s.end()


# A cell that never ends: it takes the channel to the supervisor, ends itself by a forged DONE, and is the kernel from
# then on. What it does with an execution is that one's code; each UNDO is answered by a flood, but its first word.
FORGER = """
import socket, stat, struct
for fd in os.listdir('/proc/self/fd'):
    try:
        if stat.S_ISSOCK(os.stat(int(fd)).st_mode):
            ch = socket.socket(fileno=os.dup(int(fd)))
            if ch.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == socket.SOCK_SEQPACKET:
                break
    except OSError:
        pass
STARTED, DONE, BACK, REFUSED = 17, 21, 22, 25
def say(kind, id, value=0, key=b'', data=b''):
    ch.send(struct.pack('<BBHIiII', kind, 0, len(key), id, value, len(data), 0) + key + data)
def flood(id, others):
    for _ in range(100):
        for other in [id, 0, *others]:
            for kind, value, key in ((BACK, 0, b'held'), (BACK, 0, b'kept'), (BACK, 9, b'fresh'), (REFUSED, 0, b''), (DONE, 0, b''), (STARTED, 1, b'armed')):
                say(kind, other, value, key, b'forged')
open('f', 'w').write('3'); open('g', 'w').write('3')
say(DONE, MINE)
while True:
    packet = ch.recv(1 << 16)
    kind, _, _, id, _, _, _ = struct.unpack_from('<BBHIiII', packet)
    if kind == 2:
        say(BACK, id, 0, b'held')
        flood(id, [1, 2, 3, 4, 5, 6])
    elif kind == 1:
        say(DONE, id - 1)
        say(BACK, id - 1, 0, b'held')
        say(STARTED, id, os.getpid(), b'armed')
        exec(packet[20:].decode())
"""


@only("hostile")
def test_forged():
    s = session("forged")

    def read(path):
        return base64.b64decode(s("files.read", path="/work/" + path)["data"]).decode()

    s.run("open('f', 'w').write('1')\nfor i in range(300): open(f'many{i}', 'w').write('1')")
    first = s.run("")["execution"]
    s.run("open('f', 'w').write('2')\nfor i in range(300): open(f'many{i}', 'w').write('2')")
    x = first + 2
    a = s.run(FORGER.replace("MINE", str(x)))
    check("a kernel may end an execution of its own", a["execution"] == x and a["result"]["outcome"] == "ok" and
          files(a) == {"/work/f": "changed", "/work/g": "added"}, a["result"])
    d = Door(s.id)
    d.send("session.undo")
    d2 = Door(s.id)
    d2.send("session.exec", code="open('f', 'w').write('4'); say(DONE, id)", wait_ms=60000)
    u = d.receive()
    check("it is undone once, whatever comes meanwhile", u["undone"] == x and u["files_back"] == 2, u)
    a = d2.receive()
    check("what waited comes after, and only its own is listed", a["execution"] == x + 1 and a["result"]["outcome"] == "ok" and
          files(a) == {"/work/f": "changed"}, a["result"])
    check("nothing of another execution was undone", read("many7") == "2" and read("f") == "4", (read("many7"), read("f")))
    u = s("session.undo")
    check("the next one is its own", u["undone"] == x + 1 and read("f") == "2" and read("many7") == "2", (u, read("f")))
    for _ in range(3):
        e = s.refused("session.undo")
        check("and there is no other", e and e.code == "conflict" and read("many7") == "2" and read("f") == "2", e)
    a = s.run("open('f', 'w').write('5')\nfor _ in range(3): say(BACK, id, 9, b'held')")
    check("one that says that it died takes its own files back", a["result"]["outcome"] == "died" and a["result"]["files_back"] == 1
          and read("f") == "2" and read("many7") == "2", (a["result"], read("f")))
    a = s.run("open('f', 'w').write('6'); say(DONE, id); flood(id, range(8))")
    check("what it says while nothing runs undoes nothing", a["result"]["outcome"] == "ok" and s("session.show")["state"] == "idle"
          and read("f") == "6" and read("many7") == "2", a["result"])
    check("the supervisor is there", s("info")["state"] == "running" and host_tree(s.host) == s.host_was)
    events = s.log()
    check("the log says what was undone, and when each execution began and ended", [e["execution"] for e in events if e["event"] == "session.undone"] == [x, x + 1]
          and all([e["execution"] for e in events if e["event"] == which] == list(range(1, x + 4)) for which in ("exec.start", "exec.end")),
          [(e["event"], e.get("execution")) for e in events if e["event"].startswith(("exec", "session"))])
    s.end()
    within(20, lambda: os.path.exists(os.path.join(state, "runs", s.id, "head")))
    p = subprocess.run([pale, "audit", "verify", s.id], env=env, capture_output=True, text=True, check=False)
    check("and is whole", p.returncode == 0, p.stdout + p.stderr)


@only("hostile")
def test_keeper():
    s = session("keeper")
    check("there is none while nothing was written", not keepers(s))
    s.run("open('x', 'w').write('x')")
    k = keepers(s)
    if not check("there is one then", len(k) == 1, k):
        return
    st = dict(line.split(":\t", 1) for line in open(f"/proc/{k[0]}/status").read().splitlines() if ":\t" in line)
    check("without capabilities, with a filter, not root", all(int(st[c], 16) == 0 for c in ("CapEff", "CapPrm", "CapInh", "CapAmb")) and st["NoNewPrivs"] == "1" and st["Seccomp"] == "2"
          and (not root or "0" not in st["Uid"].split()), st)
    seen = s.run("for p in os.listdir('/proc'):\n    try: print(open(f'/proc/{p}/comm').read())\n    except OSError: pass")["out"]
    check("the box does not see it", "pale-keeper" not in seen and len(seen.split()) > 1, seen)
    os.kill(k[0], signal.SIGSTOP)
    begun = time.monotonic()
    a = s.run("open('y', 'w').write('x')")
    check("one that does not answer is given up, and that is said", a["result"]["outcome"] == "ok" and a["result"]["files"] is None and started(a)["files"] is False
          and time.monotonic() - begun < 30 and within(10, lambda: k[0] not in keepers(s)), a)
    a = s.run("open('z', 'w').write('x')")
    check("the next has another", files(a) == {"/work/z": "added"} and started(a)["files"] is True, a)
    k = keepers(s)
    os.kill(k[0], signal.SIGKILL)
    a = s.run("open('zz', 'w').write('x')")
    check("also where it was killed", a["result"]["outcome"] == "ok" and within(10, lambda: files(s.run("open('z', 'a').write('x')")) == {"/work/z": "changed"}), a)
    n = s("session.exec", code="import time; open('w', 'w').write('x'); time.sleep(0.3)")["execution"]
    s("box.freeze")
    s("box.thaw")
    a = s("session.output", execution=n, wait_ms=60000)
    while a["state"] != "done":
        a = s("session.output", execution=n, wait_ms=60000, **{"from": a["next"]})
    check("an execution that was frozen lists what it changed", files(a) == {"/work/w": "added"}, a)
    k = keepers(s)
    s.end()
    check("it ends with the session", within(10, lambda: not any(start_of(p) for p in k)))
    s = Session(files=[{"path": "/sized", "access": "write", "size": "8MiB"}])
    a = s.run("open('/sized/a', 'w').write('1')")
    check("a place with a size of its own is looked at, too", files(a) == {"/sized/a": "added"}, a)
    s.run("open('/sized/a', 'w').write('2')")
    u = s("session.undo")
    check("and goes back", u["files_back"] == 1 and s.run("open('/sized/a').read()")["events"][-1]["data"]["text/plain"] == "'1'", u)
    s.end()
    s = Session(session={"kernel": "bash"})
    a = s.run("echo hello >f")
    check("a shell's are listed; its state does not go back, nor do they", list(files(a).values()) == ["added"] and started(a)["files"] is False and a["result"]["files_not_kept"], a)
    s.end()


done()
