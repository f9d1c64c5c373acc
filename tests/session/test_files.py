#!/usr/bin/python3
"""Files of a running box, at its door: what they are for, and what a hostile box tries with them."""
import threading

from sessions import *


def text(answer):
    return base64.b64decode(answer["data"]).decode()


def b64(data):
    return base64.b64encode(data).decode()


def workers(s):
    found = {}
    for p in descendants(s.supervisor):
        try:
            if open(f"/proc/{p}/comm").read() == "pale-files\n":
                found[p] = open(f"/proc/{p}/cgroup").read()
        except OSError:
            pass
    return found


def status(pid):
    return dict(line.split(":\t", 1) for line in open(f"/proc/{pid}/status").read().splitlines() if ":\t" in line)


@case
def test_ordinary():
    s = Session()
    cwd = s.run("import os; print(os.getcwd())")["out"].strip()
    a = s("files.write", path="a.txt", text="hällo\n")
    check("a file is written, where the kernel is", a["written"] == 7 and a["created"] and a["type"] == "file" and a["mode"] == 0o644, a)
    check("and is there for the code, as its own", s.run("print(open('a.txt').read(), os.stat('a.txt').st_uid == os.getuid())")["out"] == "hällo\n True\n")
    a = s("files.read", path=f"{cwd}/a.txt")
    check("it is read by its absolute path", text(a) == "hällo\n" and not a["more"] and a["size"] == 7, a)
    check("in parts", text(s("files.read", path="a.txt", offset=3, length=2)) == "ll" and s("files.read", path="a.txt", length=2)["more"]
          and not s("files.read", path="a.txt", offset=100)["data"])
    s("files.write", path="a.txt", data=b64(b"\0\xff"), offset=1)
    check("a part is written over", base64.b64decode(s("files.read", path="a.txt")["data"]) == b"h\0\xffllo\n")
    s("files.write", path="a.txt", text="end", append=True)
    check("something is appended", s("files.stat", path="a.txt")["size"] == 10)
    a = s("files.write", path="a.txt", text="new", mode=0o755)
    check("it is replaced, and gets a mode", a["size"] == 3 and a["mode"] == 0o755 and not a["created"], a)
    e = s.refused("files.write", path="b.txt", text="", create=False)
    check("nothing is made unless that is wanted", e and e.code == "not_found", e)
    check("a directory is made", s("files.mkdir", path="d")["type"] == "directory")
    e = s.refused("files.mkdir", path="d")
    check("but once", e and e.code == "conflict", e)
    check("with those on the way, also if they are there", s("files.mkdir", path="d/e/f/../f/g", parents=True)["created"]
          and not s("files.mkdir", path="d/e/f/g", parents=True)["created"])
    s.run("os.symlink('a.txt', 'l'); os.symlink('/etc', 'd/etc')")
    a = s("files.stat", path="l")
    check("a link is told as one", a["type"] == "link" and a["target"] == "a.txt", a)
    check("or followed", s("files.stat", path="l", follow=True)["type"] == "file" and text(s("files.read", path="l")) == "new")
    a = s("files.list", path=".")
    check("a list has it all, in order", [e["name"] for e in a["entries"]] == ["a.txt", "d", "l"] and not a["more"]
          and a["entries"][2]["target"] == "a.txt" and a["entries"][0]["user"] == "agent", a)
    check("a page of it", [e["name"] for e in s("files.list", path=".", limit=1, after="a.txt")["entries"]] == ["d"]
          and s("files.list", path=".", limit=1)["more"])
    e = s.refused("files.remove", path="d")
    check("a directory that is not empty is not removed", e and e.code == "conflict", e)
    a = s("files.remove", path="d", recursive=True)
    check("unless all of it is to go; what a link leads to stays", a == {"removed": 5, "more": False}
          and s.refused("files.stat", path="d") and s("files.stat", path="/etc/passwd")["size"] > 0, a)
    check("a link is removed, not what it points to", s("files.remove", path="l")["removed"] == 1 and s("files.stat", path="a.txt"))
    big = os.urandom(9 << 20)
    for at in range(0, len(big), 4 << 20):
        s("files.write", path="big", data=b64(big[at:at + (4 << 20)]), **({"offset": at} if at else {}))
    got = b"".join(base64.b64decode(s("files.read", path="big", offset=at)["data"]) for at in range(0, len(big), 4 << 20))
    check("a large file goes in and out in pieces", got == big)
    for arguments, why in (({}, "missing"), ({"path": ""}, "at least one"), ({"path": 3}, "a text"), ({"path": "a", "path_base64": "YQ=="}, "a text"),
                           ({"path_base64": "?"}, "no base64"), ({"path_base64": b64(b"a\0b")}, "zero"), ({"path": "x" * 5000}, "File name too long"),
                           ({"path": "a", "offset": -1}, "whole number"), ({"path": "a", "length": (4 << 20) + 1}, "whole number"),
                           ({"path": "a", "what": 1}, "no argument")):
        e = s.refused("files.read", **arguments)
        check(f"arguments that make no sense are refused: {why}", e and e.code == "arguments" and why in e.message, e)
    for arguments in ({}, {"text": "a", "data": "YQ=="}, {"data": "a"}, {"text": "a", "mode": 0o4755}, {"text": "a", "append": True, "offset": 0},
                      {"data": b64(bytes((4 << 20) + 1))}):
        e = s.refused("files.write", path="x", **arguments)
        check(f"and when writing: {str(arguments)[:40]}", e and e.code == "arguments", e)
    for path in ("/", ".", "d/..", "/.."):
        e = s.refused("files.remove", path=path, recursive=True)
        check(f"{path} is not removed", e and e.code == "arguments", e)
    events = [e for e in s.log() if e["event"] == "files.changed"]
    check("what was changed is in the log, with who did it", events[0]["op"] == "write" and events[0]["path"] == f"{cwd}/a.txt"
          and events[0]["bytes"] == 7 and events[0]["uid"] == os.geteuid() and {e["op"] for e in events} == {"write", "mkdir", "remove"}, events[:1])
    times = []
    for _ in range(300):
        begun = time.perf_counter()
        s("files.read", path="a.txt")
        times.append(time.perf_counter() - begun)
    print(f"# a small file is read in {sorted(times)[150] * 1e6:.0f} us, as the client sees it")
    check("in less than a millisecond, mostly", sorted(times)[60] < 0.001, sorted(times)[60])
    s.end()


@case
def test_confinement():
    s = Session()
    s("files.write", path="a", text="x")
    s("files.read", path="a")
    w = workers(s)
    check("one process reads, another writes", len(w) == 2, w)
    for p in w:
        st = status(p)
        check("it has no capability, no way to one, and a filter",
              all(int(st[k], 16) == 0 for k in ("CapEff", "CapPrm", "CapInh", "CapAmb")) and st["NoNewPrivs"] == "1" and st["Seccomp"] == "2", st)
        ids = set(st["Uid"].split())
        check("it is the box's user", ids == set(status(descendants(s.pid)[0])["Uid"].split()) and (not root or "0" not in ids), st["Uid"])
        if root:
            check("in the box's namespaces, but not its process namespace",
                  all((os.readlink(f"/proc/{p}/ns/{n}") == os.readlink(f"/proc/{s.pid}/ns/{n}")) == same
                      for n, same in (("user", True), ("mnt", True), ("pid", False))))
            fds = os.listdir(f"/proc/{p}/fd")
            check("it holds next to nothing", len(fds) <= 7, [os.readlink(f"/proc/{p}/fd/{n}") for n in fds])
    check("who writes counts as the box, who reads does not", not cgroups(s.id) or sorted(s.id in c for c in w.values()) == [False, True], w)
    check("nothing in the box sees them",
          s.run("import os; print([c for p in os.listdir('/proc') if p.isdigit() for c in [open(f'/proc/{p}/comm').read()] if 'files' in c])")["out"] == "[]\n")
    for p in w:
        os.kill(p, signal.SIGKILL)
    check("if one dies, the next request has another", within(5, lambda: not s.refused("files.read", path="a")))
    check("and writes again", within(5, lambda: not s.refused("files.write", path="a", text="y")))
    time.sleep(11.5)
    check("after a while they are gone", workers(s) == {}, workers(s))
    # One that does not answer is ended.
    s("files.read", path="a")
    p = next(iter(workers(s)))
    os.kill(p, signal.SIGSTOP)
    d = Door(s.id)
    begun = time.monotonic()
    d.send("files.read", path="a")
    time.sleep(0.3)
    s.send("files.stat", path="a")
    time.sleep(0.3)
    quick = Door(s.id)
    check("while one hangs the supervisor does not", quick("info")["state"] == "running" and time.monotonic() - begun < 5)
    try:
        d.receive()
        e = None
    except Refused as refused:
        e = refused
    check("it is ended after ten seconds", e and e.code == "failed" and 8 < time.monotonic() - begun < 20, e)
    check("and who waited behind it is answered", s.receive()["size"] == 1)
    # Who leaves keeps nobody waiting.
    p = next(iter(workers(s)))
    os.kill(p, signal.SIGSTOP)
    d.send("files.read", path="a")
    time.sleep(0.3)
    s.send("files.stat", path="a")
    time.sleep(0.3)
    d.close()
    try:
        os.kill(p, signal.SIGCONT)
    except ProcessLookupError:
        pass  # nobody wanted it any more
    check("nor is one kept waiting by who has left", s.receive()["size"] == 1)
    doors = [Door(s.id) for _ in range(30)]
    for i, d in enumerate(doors):
        d.send("files.write" if i % 3 == 0 else "files.read", path="a", **({"text": "z"} if i % 3 == 0 else {}))
    # Who reads may come between the two steps by which another writes.
    check("thirty at once are all served", all(d.receive()["size"] in (0, 1) for d in doors))
    for d in doors:
        d.close()
    s.end()
    check("nothing of it outlives the box", within(10, lambda: not any(start_of(p) for p in w)) and within(10, lambda: cgroups(s.id) == []))


@case
def test_where_paths_lead():
    s = Session()
    s.run("""import os
for n, t in {'proc1': '/proc/1/root', 'self': '/proc/self/root', 'fd': '/proc/self/fd/0', 'cwd': '/proc/1/cwd', 'up': '../../../../../../..',
             'loop': 'loop', 'shadow': '/etc/shadow', 'dangling': 'made', 'exe': '/proc/1/exe'}.items(): os.symlink(t, n)
open('secret', 'w').write('x'); os.chmod('secret', 0)
os.mkdir('closed'); open('closed/a', 'w'); os.chmod('closed', 0)
os.mkfifo('fifo')
import socket; k = socket.socket(socket.AF_UNIX); k.bind('sock')""")
    for path, codes in (("proc1/etc/passwd", ("conflict", "refused", "not_found")), ("self/etc/passwd", ("conflict", "not_found")),
                        ("fd", ("conflict", "not_found")), ("cwd/a", ("conflict", "refused", "not_found")), ("exe", ("conflict", "refused", "not_found")),
                        ("/proc/1/environ", ("refused", "not_found")), ("/proc/self/status", ("not_found",)), ("/proc/sys/kernel/hostname", ("refused",)),
                        ("loop", ("conflict",)), ("shadow", ("refused", "not_found")), ("dangling", ("not_found",)),
                        ("secret", ("refused",)), ("closed/a", ("refused",)), ("fifo", ("conflict",)), ("sock", ("conflict",)),
                        ("/dev/null", ("conflict",)), ("/dev/tty", ("conflict",)), ("/etc", ("conflict",)), ("/etc/passwd/x", ("conflict",))):
        begun = time.monotonic()
        e = s.refused("files.read", path=path)
        check(f"{path} is not read", e and e.code in codes and time.monotonic() - begun < 3, e)
        e = s.refused("files.write", path=path, text="x") if path != "dangling" else None
        check(f"nor written", path == "dangling" or (e and e.code in codes + ("refused",)), e)
    check("whoever goes up from the root stays in the box",
          text(s("files.read", path="up/etc/hostname")) == text(s("files.read", path="/etc/hostname")) == "pale\n"
          and text(s("files.read", path="/../../etc/hostname")) == "pale\n")
    check("/proc is not listed, nor written", s.refused("files.list", path="/proc").code == "refused" and s.refused("files.list", path="/proc/sys"))
    s("files.write", path="dangling", text="through")
    check("a file is made where a link says, in the box", text(s("files.read", path="made")) == "through")
    for path in ("/usr/x", "/etc/passwd", "/x", "/bin/sh", "/etc/pale/python.py"):
        e = s.refused("files.write", path=path, text="x")
        check(f"{path} is not written", e and e.code == "refused", e)
    for path in ("/usr/bin", "/etc/passwd", "/home"):
        e = s.refused("files.remove", path=path, recursive=True)
        check(f"{path} is not removed", e and e.code in ("refused", "conflict"), e)
    check("and all of it is there", s.run("print(os.path.exists('/usr/bin/env') and os.path.exists('/etc/passwd'))")["out"] == "True\n")
    e = s.refused("files.remove", path="/tmp", recursive=True)
    check("a place of the plan's stays", e and e.code in ("conflict", "refused"), e)
    # Names of any bytes.
    s.run("os.mkdir('n'); os.chdir('n')\nfor n in [b'a\\nb', b'\\xff\\xfe', b'\\x1b[31m', b'\"', b'-', b' ', b'\\xc3\\xa4']: open(n, 'w').write('!')\n"
          "os.symlink(b'\\xff\\n', b'l'); os.chdir('..')")
    entries = s("files.list", path="n")["entries"]
    names = [base64.b64decode(e["name_base64"]) if "name_base64" in e else e["name"].encode() for e in entries]
    check("names of any bytes are listed, in order", names == sorted([b"a\nb", b"\xff\xfe", b"\x1b[31m", b'"', b"-", b" ", b"\xc3\xa4", b"l"]), names)
    check("and so are targets", base64.b64decode([e for e in entries if e.get("name") == "l"][0]["target_base64"]) == b"\xff\n")
    check("each can be read", all(text(s("files.read", path_base64=b64(b"n/" + n))) == "!" for n in names if n != b"l"))
    check("and listed from", len(s("files.list", path="n", after_base64=b64(b"\xc3\xa4"))["entries"]) == 1)
    check("they are in the log as text", not s.refused("files.write", path_base64=b64(b"n/\xff\x1b"), text="") and "\x1b" not in json.dumps(s.log()))
    s.end()


@case
def test_races():
    s = Session(limits={"processes": 64, "inodes": 300000, "wall": "10m", "cpu": "10m"})
    s.run("""import os, subprocess, sys
os.mkdir('keep'); open('keep/a', 'w').write('kept'); os.mkdir('keep/d'); open('keep/d/b', 'w')
flip = '''
import os
os.makedirs("t", exist_ok=True)
n = 0
while True:
    n += 1
    try:
        os.makedirs("t/x/y", exist_ok=True); open("t/x/a", "w").write("mine"); open("t/x/y/z", "w")
    except OSError: pass
    try: os.rename("t/x", f"t/o{n % 7}")
    except OSError: pass
    try:
        os.symlink(KEEP, "t/x")
        os.symlink("/proc/1/root", "t/p")
    except OSError: pass
    for q in ("t/x", "t/p"):
        try: os.unlink(q)
        except OSError: pass
'''.replace("KEEP", repr(os.path.abspath('keep')))
p = [subprocess.Popen([sys.executable, '-c', flip]) for _ in range(2)]""")
    until, kinds, rounds, more = time.monotonic() + 6, set(), 0, 0
    while time.monotonic() < until:
        rounds += 1
        try:
            kinds.add(text(s("files.read", path="t/x/a")))
        except Refused as e:
            kinds.add(e.code)
        try:
            more += s("files.remove", path="t", recursive=True)["more"]
        except Refused as e:
            kinds.add("remove: " + e.code)
        s.refused("files.mkdir", path="t/x/y/z/q", parents=True)
    print(f"# {rounds} rounds, {more} not finished: {sorted(kinds)}")
    check("in a race a path leads to one or the other, or nowhere", kinds <= {"", "mine", "kept", "not_found", "conflict", "remove: not_found", "remove: conflict", "failed"}, kinds)
    s.run("for q in p: q.kill()")
    check("what a link led to is untouched by removing", s.run("print(os.path.exists('keep/a'), os.path.exists('keep/d/b'))")["out"] == "True True\n",
          s.run("print(os.listdir('keep'))")["out"])
    # A name that is now a file, now a FIFO, now a device, now held by a lease.
    s.run("""flip = '''
import os, fcntl
while True:
    for make in (lambda: os.mkfifo("f.new"), lambda: open("f.new", "w").write("text"), lambda: os.symlink("/dev/tty", "f.new"), lambda: os.mkdir("f.new")):
        try:
            make(); os.rename("f.new", "f")
        except OSError:
            for n in ("f.new", "f"):
                try: os.unlink(n)
                except OSError:
                    try: os.rmdir(n)
                    except OSError: pass
'''
p = subprocess.Popen([sys.executable, '-c', flip])
l = os.open('leased', os.O_RDONLY | os.O_CREAT)
import fcntl, signal
signal.signal(signal.SIGIO, signal.SIG_IGN)
try: fcntl.fcntl(l, fcntl.F_SETLEASE, fcntl.F_WRLCK); print('leased')
except OSError as e: print(e)""")
    slow, seen = 0.0, set()
    until = time.monotonic() + 3
    while time.monotonic() < until:
        begun = time.monotonic()
        try:
            seen.add(text(s("files.read", path="f")))
        except Refused as e:
            seen.add(e.code)
        slow = max(slow, time.monotonic() - begun)
    check("no kind of file makes a read wait", slow < 2 and "text" in seen and seen <= {"", "text", "conflict", "not_found"}, (slow, seen))
    begun = time.monotonic()
    e = s.refused("files.write", path="leased", text="x")
    check("nor does a lease", time.monotonic() - begun < 3, e)
    s.run("p.kill(); os.close(l)")
    # A file that grows.
    s.run("p = subprocess.Popen(['sh', '-c', 'while :; do echo line; done >grows'])")
    within(20, lambda: not s.refused("files.stat", path="grows") and s("files.stat", path="grows")["size"] > 2000)
    a = s("files.read", path="grows", length=1000)
    check("of a file that grows one gets what was asked for", len(base64.b64decode(a["data"])) == 1000 and a["more"], a["size"])
    s.run("p.kill()")
    # A directory larger than an answer.
    s.run("os.mkdir('many')\nfor i in range(30000): open(f'many/{i * 7919 % 30000:05d}', 'w')")
    names, after, begun = [], "", time.monotonic()
    while True:
        a = s("files.list", path="many", after=after, limit=4096)
        names += [e["name"] for e in a["entries"]]
        if not a["more"]:
            break
        after = names[-1]
    print(f"# 30000 entries listed in {time.monotonic() - begun:.2f} s")
    check("a large directory is listed whole, page by page", names == [f"{i:05d}" for i in range(30000)], len(names))
    s.run("d = 'deep'\nfor i in range(1500):\n  try: os.mkdir(d)\n  except OSError: break\n  os.chdir(d); d = 'd' * 200\nos.chdir(os.path.expanduser('~'))")
    check("removed, too", within(60, lambda: not s("files.remove", path="many", recursive=True)["more"]))
    s.end()


@case
def test_limits():
    s = Session(limits={"disk": "8MiB", "memory": "256MiB"})
    for i in range(3):
        e = s.refused("files.write", path=f"f{i}", data=b64(bytes(3 << 20)))
        if e:
            break
    check("a full disk is told", e and e.code == "failed" and "No space left" in e.message and "were written" in e.message, e)
    check("and the session lives", s.run("print(1)")["out"] == "1\n")
    s.end()
    s = Session(limits={"disk": "512MiB", "memory": "96MiB", "file_size": "3MiB"})
    e = s.refused("files.write", path="f", data=b64(bytes(4 << 20)))
    check("a file is as large as it may be", e and "File too large" in e.message, e)
    before = s("info")["usage"]["memory_peak_bytes"]
    for i in range(60):
        e = s.refused("files.write", path=f"f{i}", data=b64(bytes(3 << 20)))
        if e:
            break
    check("what is written counts as the box's memory, and stops before that is used up", e and e.code == "failed" and "memory" in e.message and 10 < i < 40, (i, e))
    check("and the session lives", s.run("print(1)")["out"] == "1\n")
    check("its files too", s("files.stat", path="f2")["size"] == 3 << 20)
    if cgroups(s.id):
        check("the figures say so", within(10, lambda: s("info")["usage"]["memory_peak_bytes"] > before + (20 << 20)) or not root, (before, s("info")["usage"]))
    s.end()


@case
def test_frozen():
    s = Session()
    s("files.write", path="a", text="one")
    s("box.freeze")
    check("a frozen box's files are read", text(s("files.read", path="a")) == "one")
    e = s.refused("files.write", path="a", text="two")
    check("and written, unless what writes would stand with it", e is None or (e.code == "conflict" and "frozen" in e.message), e)
    s("box.thaw")
    check("afterwards all is as before", s("files.write", path="a", text="three")["written"] == 5
          and s.run("print(open('a').read())")["out"] == "three\n")
    s.end()


@case
def test_places():
    """Overlays, hidden places, read-only sources: as the box sees them."""
    work = os.path.join(place, "work")
    for n in ("", "/hidden"):
        os.mkdir(work + n)
        os.chmod(work + n, 0o755)
    for n in ("a", "hidden/h"):
        with open(f"{work}/{n}", "w") as f:
            f.write("host")
    s = Session(files=[{"path": "/work", "from": work, "access": "overlay"}, {"path": "/work/hidden", "access": "hide"},
                       {"path": "/ro", "from": work, "access": "read"}])
    check("what lies under an overlay is read", text(s("files.read", path="/work/a")) == "host" and text(s("files.read", path="/ro/a")) == "host")
    s("files.write", path="/work/a", text="box")
    s("files.write", path="/work/new", text="box")
    s("files.remove", path="/work/a")
    check("what is written there stays off the host", open(f"{work}/a").read() == "host" and not os.path.exists(f"{work}/new"))
    check("and is what the box sees", s.run("import os; print(sorted(os.listdir('/work')))")["out"] == "['hidden', 'new']\n")
    check("what is hidden is hidden", s("files.list", path="/work/hidden")["entries"] == [] and s.refused("files.read", path="/work/hidden/h").code == "not_found")
    e = s.refused("files.remove", path="/work", recursive=True)
    check("no other mount is emptied, and what is a mount stays", e and e.code == "conflict" and open(f"{work}/hidden/h").read() == "host", e)
    e = s.refused("files.write", path="/ro/a", text="x")
    check("what is read-only is", e and e.code == "refused", e)
    s.end()


@case
def test_plain_box():
    before = set(os.listdir(os.path.join(state, "runs")))
    p = subprocess.Popen([pale, "run", "--allow", "example.com", "--", "sh", "-c", "echo inside >f; exec sleep 60"], env=env, cwd=place,
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        runs = lambda: [r for r in os.listdir(os.path.join(state, "active")) if r not in before and os.path.exists(os.path.join(state, "runs", r, "door"))]
        if not within(10, lambda: runs() and os.path.exists(os.path.join(state, "runs", runs()[0], "door", "control"))):
            p.kill()
            return skip("a box with a network has a door for files", p.communicate()[1].decode().strip()[-200:], "network")
        d = Door(runs()[0])
        ok = within(10, lambda: not d.refused("files.read", path="f"))
        check("a box that is no session has its files at its door", ok and text(d("files.read", path="f")) == "inside\n")
        d("files.write", path="g", text="from outside")
        check("both ways", d("files.stat", path="g")["user"] == "agent")
        d("box.destroy")
        p.wait(timeout=60)
    finally:
        p.kill()
        p.communicate()


@case
def test_idle():
    s = Session()
    # Whatever starting it took is use as well.
    check("a session idles", within(20, lambda: s("session.show")["idle_ms"] > 700))
    s("files.stat", path="/tmp")
    idle = s("session.show")["idle_ms"]
    check("whoever looks at its files uses it", idle < 700, idle)
    s.end()
    s = Session(session={"idle": "never", "lifetime": "never"})
    check("without an end", s("session.show")["idle_limit_ms"] == 0)
    s.end()


@case
def test_links():
    s = Session()
    s("files.write", path="a", text="x")
    a = s("files.link", path="l", target="a")
    check("a link is made", a["type"] == "link" and text(s("files.read", path="l")) == "x", a)
    e = s.refused("files.link", path="l", target="b")
    check("but once", e and e.code == "conflict", e)
    s("files.link", path="l", target_base64=b64(b"/\xff"), replace=True)
    check("unless it is to be replaced", s("files.stat", path="l")["target_base64"] == b64(b"/\xff"))
    e = s.refused("files.link", path="a", target="b", replace=True)
    check("a file is not", e and e.code == "conflict" and text(s("files.read", path="a")) == "x", e)
    for target in ("", "x" * 4096, 3):
        e = s.refused("files.link", path="m", target=target)
        check(f"no such target: {str(target)[:5]}", e and e.code == "arguments", e)
    e = s.refused("files.link", path="/etc/x", target="a")
    check("nor where the box may not write", e and e.code in ("host", "refused"), e and e.code)
    check("it is on record", [e["op"] for e in s.log() if e["event"] == "files.changed"][1] == "link")
    s.end()


done()
