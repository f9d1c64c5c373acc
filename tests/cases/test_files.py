"""What users of such tools ran into with files."""
import os
import shutil
import stat
import subprocess

from case import *

TREE = [  # name, content or link target or None (a directory), mode
    ("", None, 0o750), ("plain.txt", "plain\n", 0o640), ("private", None, 0o700), ("private/key", "key\n", 0o600),
    ("run.sh", "#!/bin/sh\necho ran\n", 0o755), ("sub", None, 0o755), ("sub/deep", None, 0o755),
    ("sub/deep/file", "deep\n", 0o444), (".dotfile", "-> plain.txt", None), ("dangling", "-> nowhere", None),
    ("loop", "-> loop", None), ("out", "-> /etc/hostname", None), ("out_rel", "-> ../outside.txt", None),
    ("-rf", "dash\n", 0o644), ("new\nline", "nl\n", 0o644), ("q\"uo'te `id` $(id)", "quote\n", 0o644),
    ("gr\u00fc\u00df", "utf8\n", 0o644), ("empty", "", 0o644),
]


def make(name):
    top = os.path.join(place, name)
    shutil.rmtree(top, ignore_errors=True)
    for path, content, mode in TREE:
        full = os.path.join(top, path) if path else top
        if content is None:
            os.mkdir(full, mode)
        elif content.startswith("-> "):
            os.symlink(content[3:], full)
        else:
            write(full, content, mode)
        if mode is not None:
            os.chmod(full, mode)
            os.utime(full, (1000000000, 1000000000))
    with open(os.path.join(os.fsencode(top), b"byte\xff"), "w") as f:
        f.write("byte\n")
    return top


outside_file = write("outside.txt", "outside\n")
tree = make("tree")
# What a program sees of a directory: the same code outside and inside.
SEE = r"""
import os, sys
top = os.fsencode(sys.argv[1])
for base, dirs, files in sorted(os.walk(top)):
    for n in [b"."] + sorted(dirs + files):
        p = os.path.join(base, n); s = os.lstat(p)
        c = os.readlink(p) if os.path.islink(p) else open(p, "rb").read() if os.path.isfile(p) else None
        print(os.path.relpath(p, top), oct(s.st_mode), s.st_uid - %d == 0, s.st_size if not os.path.isdir(p) else "", s.st_mtime_ns, c)
"""
DIRECT = SEE % os.getuid()


def seen_inside(*flags, at=None):
    # The owner shows as the box's user, whatever its number is.
    code = SEE.replace("%d", "os.getuid()")
    return box(*flags, "--", PYTHON, "-c", code, at or tree)


@case
def test_shown_unchanged():
    want = subprocess.run([PYTHON, "-c", DIRECT, tree], capture_output=True, text=True).stdout
    for flag in ("--ro", "--overlay"):
        before = snapshot(tree)
        r = seen_inside(flag, tree)
        same(f"{flag}: names, modes, owner, sizes, times and contents are the host's", r.out, want)
        r = seen_inside(flag, tree + ":/data/other", at="/data/other")
        same(f"{flag} elsewhere: the same", r.out, want)
        check(f"{flag}: nothing changed on the host", snapshot(tree) == before)


@case
def test_read_only():
    code = f"""
import os
top = {tree!r}
def tries():
    yield lambda: open(top + "/plain.txt", "a").write("x")
    yield lambda: open(top + "/fresh", "w")
    yield lambda: os.mkdir(top + "/d")
    yield lambda: os.rename(top + "/empty", top + "/empty2")
    yield lambda: os.chmod(top + "/plain.txt", 0o777)
    yield lambda: os.utime(top + "/plain.txt")
    yield lambda: os.link(top + "/plain.txt", top + "/l")
    yield lambda: os.symlink("x", top + "/s")
    yield lambda: os.truncate(top + "/plain.txt", 0)
    yield lambda: os.unlink(top + "/sub/deep/file")
    yield lambda: os.rmdir(top + "/sub/deep")
got = []
for i, f in enumerate(tries()):
    try: f(); got.append(i)
    except OSError as e: pass
print(got)
"""
    before = snapshot(tree)
    r = py(code, "--ro", tree)
    same("--ro: nothing can be changed", r.out.strip(), "[]")
    check("--ro: and the host is as it was", snapshot(tree) == before)
    r = py(code, "--overlay", tree)
    check("--overlay: all of it can be changed", r.out.count(",") == 10, r)
    check("--overlay: and the host is as it was", snapshot(tree) == before)
    p = outside(code.replace(tree, make("scratch")))
    check("outside all of it can be changed", p.stdout.count(b",") == 10, p)


@case
def test_nesting():
    before = snapshot(tree)
    r = box("--ro", tree, "--rw", f"{place}/results:{tree}/sub", "--", "sh", "-c",
            f"echo x > {tree}/sub/f && cat {tree}/sub/f; ls {tree}/sub; (echo x > {tree}/g) 2>&1 || echo readonly")
    check("a writable directory in a read-only one", "x\nf\n" in r.out and "readonly" in r.out, r)
    check("collected to the host", open(os.path.join(place, "results/f")).read() == "x\n")
    inputs = make("inputs")
    r = box("--rw", f"{place}/results2:/w", "--ro", f"{inputs}:/w/in", "--", "sh", "-c",
            "cat /w/in/plain.txt; echo y > /w/y && echo wrote; (echo z > /w/in/z) 2>&1 || echo readonly")
    check("a read-only directory in a writable one", "plain\nwrote\n" in r.out and "readonly" in r.out, r)
    r = box("--ro", f"{tree}:/a", "--ro", f"{inputs}:/a/not/there/yet", "--", "cat", "/a/not/there/yet/plain.txt", "/a/plain.txt")
    same("a mount point that the source lacks", r.out, "plain\nplain\n")
    r = box("--overlay", tree, "--ro", f"{outside_file}:{tree}/sub/one.txt", "--", "sh", "-c",
            f"cat {tree}/sub/one.txt; (echo q > {tree}/sub/one.txt) 2>/dev/null || echo readonly; echo q > {tree}/sub/two && echo wrote")
    check("a single file in an overlay", r.out == "outside\nreadonly\nwrote\n", r)
    check("nothing was made on the host for mount points", snapshot(tree) == before)
    check("nor in the other source", not os.path.exists(os.path.join(inputs, "not")))


@case
def test_mounts_in_results():
    """What holds a mount in a directory that is collected is no result, and replaces nothing."""
    secret = write("config.json", "ours")
    for size in ("", ":1MiB"):
        dest = make("mounted" + size[1:])
        write(os.path.join(dest, "config.json"), "important")
        r = box("--rw", f"{dest}:/w{size}", "--ro", f"{secret}:/w/config.json", "--ro", f"{make('tree2')}:/w/deep/er/in",
                "--hide", "/w/none", "--", "sh", "-c", "cat /w/config.json; echo r > /w/result")
        same("a file mounted in a collected directory is there", r.out, "ours")
        same("and the host's file of that name stays", open(os.path.join(dest, "config.json")).read(), "important")
        check("no mount point is made on the host", not os.path.exists(os.path.join(dest, "deep")) and
              not os.path.exists(os.path.join(dest, "none")), os.listdir(dest))
        same("the result is collected", open(os.path.join(dest, "result")).read(), "r\n")


@case
def test_times_with_mounts_inside():
    source = make("timed")
    inner = os.path.join(source, "sub")
    os.chmod(inner, 0o1750)
    for d in (os.path.join(inner, "deep"), inner, source):
        os.makedirs(d, exist_ok=True)
    for d in (os.path.join(inner, "deep"), inner, source):
        os.utime(d, (10**9, 10**9))
    outside = [(os.stat(d).st_mode, os.stat(d).st_mtime) for d in (source, inner)]
    for flag in ("--ro", "--overlay"):
        r = py(f"import os; print([(os.stat(d).st_mode, os.stat(d).st_mtime) for d in ({source!r}, {inner!r})])",
               flag, source, "--rw", f"{place}/o:{inner}/new/er", "--hide", f"{inner}/deep")
        same(f"{flag}: modes and times are the host's, with mounts inside", r.out.strip(), str(outside))


@case
def test_destinations():
    plain = write("plain-destination", "x")
    os.symlink("nowhere", os.path.join(place, "dangling"))
    for dest, why in ((plain, "no directory"), (f"{place}/no/such", "not there"), (f"{place}/dangling", "link")):
        r = box("--rw", f"{dest}:/out", "--", "touch", "/out/f")
        check(f"results that cannot go where they should: nothing runs ({why})",
              r.status == 125 and why in r.err, r)
    dest = make("clash")
    os.mkdir(os.path.join(dest, "d"))
    r = run("--rw", f"{dest}:/out", "--", "sh", "-c", "echo x > /out/d")
    check("what could not be collected is told", b"1 file was not collected" in r.stderr, r)
    dest = os.path.join(place, "vanishing")
    os.mkdir(dest)
    r = subprocess.Popen(command("--rw", f"{dest}/there:/out", "--", "sh", "-c", "echo x > /out/f; echo here; read x"),
                         env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=work)
    r.stdout.readline()
    os.rmdir(dest)
    err = r.communicate(b"\n")[1]
    check("a run whose results are lost does not end with 0", r.returncode == 125 and b"collect" in err, err)


@case
def test_working_directory():
    """A name on the command line means inside what it means outside."""
    here = make("project")
    r = run("--ro", "plain.txt", "--rw", "./results", "--", "sh", "-c",
            "pwd; cat plain.txt; echo x > chart.png && echo y > results/f && ls", cwd=here)
    same("the caller's directory, of which parts are shown", r.stdout.decode(),
         f"{here}\nplain\nchart.png\nplain.txt\nresults\n")
    check("of it only the results are kept", os.path.exists(here + "/results/f") and not os.path.exists(here + "/chart.png"))
    r = run("--", "pwd", cwd=here)
    same("if nothing of it is shown: HOME", r.stdout, b"/home/agent\n")
    r = run("--overlay", here, "--", "pwd", cwd=place)
    same("a workspace is the working directory", r.stdout.decode(), here + "\n")


@case
def test_moved_programs():
    """A program or script that the policy shows under another name is run by that name."""
    tool = write("tools/tool", "#!/bin/sh\necho tool $0 $1\n", 0o755)
    script = write("tools/plain.py", "import sys; print(sys.argv)\n", 0o644)
    same("a program", box("--ro", f"{tool}:/opt/tool", "--", "/opt/tool", "a").out, "tool /opt/tool a\n")
    same("a script", box("--ro", f"{script}:/w/x.py", "--", "/w/x.py", "a").out, "['/w/x.py', 'a']\n")
    same("in a directory", box("--overlay", f"{place}/tools:/work", "--", "/work/tool", "b").out, "tool /work/tool b\n")
    r = box("--ro", f"{place}/tools:/work", "--", "/work/none")
    check("one that is not there", r.status == 127, r)
    r = box("--ro", f"{place}/tools:/work", "--", "/work")
    check("a directory", r.status == 126, r)


@case
def test_hide_in_the_image():
    r = box("--hide", "/usr/bin/id", "--hide", "/usr/bin/no-such-program", "--", "sh", "-c",
            "cat /usr/bin/id | wc -c; ls /usr/bin/no-such-program; /usr/bin/id; echo $?")
    check("a program of the host can be hidden", r.out == "0\n126\n" and r.status == 0, r)
    r = box("--set", f"image={place}/nowhere", "--", "true")
    check("an image that is none: nothing runs", r.status == 125 and "root file system" in r.err, r)


@case
def test_foreign_groups():
    """The kernel copies no file up whose group does not exist inside; the remedy is told."""
    here = make("foreign")
    groups = [g for g in os.getgroups() if g != os.getegid()] or ([12345] if root else [])
    if not groups:
        return skip("files of another group in an overlay", "this user has one group only")
    os.chown(os.path.join(here, "plain.txt"), -1, groups[0])
    r = run("--overlay", here, "--", "sh", "-c", "echo x >> plain.txt")
    if root:
        same("files of another group in an overlay can be changed by root's box", r.returncode, 0)
    else:
        check("files of another group in an overlay: the remedy is told", r.returncode != 0 and b"chgrp" in r.stderr, r)


@case
def test_changes_are_told():
    here = make("unchanged")
    r = run("--overlay", here, "--", "cat", "plain.txt")
    check("no changes, no word of changes", b"changes" not in r.stderr, r)
    r = run("--overlay", here, "--", "rm", "plain.txt")
    check("changes are told", b"changes were kept" in r.stderr, r)


@case
def test_hide():
    before = snapshot(tree)
    look = (f"cat {tree}/private/key; ls -A {tree}/private; cat {tree}/plain.txt; "
            f"(echo x > {tree}/private/new) 2>/dev/null && echo WRITABLE; (echo x > {tree}/plain.txt) 2>/dev/null && echo WRITABLE; echo end")
    r = box("--ro", tree, "--", "sh", "-c", look)
    check("without --hide it is there", "key\n" in r.out and "plain\n" in r.out, r)
    for flag in ("--ro", "--overlay"):
        r = box(flag, tree, "--hide", f"{tree}/private", "--hide", f"{tree}/plain.txt", "--", "sh", "-c", look)
        same(f"{flag}: what is hidden is empty and cannot be written", r.out, "end\n")
        r = py(f"import os; os.rename('{tree}/private', '{tree}/moved'); print(os.listdir('{tree}/moved'))",
               flag, tree, "--hide", f"{tree}/private")
        check(f"{flag}: nor moved away", "key" not in r.out, r)
    check("nothing is left on the host", snapshot(tree) == before)


@case
def test_links():
    r = box("--overlay", tree, "--", "sh", "-c", f"cat {tree}/out; cat {tree}/out_rel; cat {tree}/.dotfile")
    check("a link that leads out leads nowhere, or into the box", "outside" not in r.out and "plain" in r.out
          and open("/etc/hostname").read() not in r.out.replace("plain\n", ""), r)
    check("outside it leads out", open(os.path.join(tree, "out_rel")).read() == "outside\n")
    r = box("--overlay", tree, "--", "sh", "-c", f"echo evil > {tree}/out_rel; echo evil > {tree}/dangling; echo done")
    check("writing through links stays inside", open(outside_file).read() == "outside\n" and "done" in r.out, r)
    link = os.path.join(place, "link-to-tree")
    os.symlink(tree, link)
    r = box("--ro", f"{link}:/data", "--", "cat", "/data/plain.txt")
    same("a source that is a link", r.out, "plain\n")
    os.unlink(link)


@case
def test_collection_follows_no_link():
    victim = write("victim.txt", "untouched\n")
    os.makedirs(os.path.join(place, "got"), exist_ok=True)
    os.symlink(victim, os.path.join(place, "got/there"))
    r = py(f"import os; os.symlink({victim!r}, '/out/leads-out'); os.symlink('/etc', '/out/etc'); "
           "open('/out/there', 'w').write('evil'); open('/out/fine', 'w').write('fine'); os.mkfifo('/out/fifo'); "
           "os.chmod('/out/fine', 0o6755)", "--rw", f"{place}/got:/out")
    check("it ran", r.status == 0, r)
    check("a link at the destination was not written through", open(victim).read() == "untouched\n")
    check("what is fine was collected", open(os.path.join(place, "got/fine")).read() == "fine")
    check("without setuid", not os.stat(os.path.join(place, "got/fine")).st_mode & 0o6000)
    check("no link that leads out", not os.path.lexists(os.path.join(place, "got/leads-out")) and
          not os.path.lexists(os.path.join(place, "got/etc")), os.listdir(os.path.join(place, "got")))
    check("no FIFO", not os.path.lexists(os.path.join(place, "got/fifo")))


@case
def test_home():
    r = box("--", "sh", "-c", 'cd && pwd && test "$PWD" = "$HOME" && echo ok > .profile && mkdir -p .cache/a && '
            'cat .profile && ls -A / | tr "\\n" " "')
    check("HOME exists and is writable", r.status == 0 and "ok\n" in r.out, r)
    same("nothing was left in the caller's home", sorted(os.listdir(home)), [])
    same("nor in the working directory", [n for n in os.listdir(work) if n not in ("x",)], [])
    r = box("--", "sh", "-c", "cd /tmp && git init -q r && cd r && echo a > a && git add a && "
            "git -c user.name=A -c user.email=a@b commit -qm one && git log --format=%s")
    check("git works", r.out == "one\n", r)
    r = box("--", "sh", "-c", "cd && /usr/bin/python3 -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix)'")
    check("a virtual environment can be made", r.out.endswith("/v\n"), r)
    r = py("import pip; print('have')")
    if "have" in r.out:
        r = box("--timeout", "60s", "--", PYTHON, "-m", "pip", "--version")
        check("pip works", "pip " in r.out, r)
    r = py("import ssl, sqlite3, json, socket, threading, subprocess, multiprocessing as m, tempfile, ctypes\n"
           "t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\n"
           "print(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout)\n"
           "q = m.get_context('fork').Queue(); p = m.get_context('fork').Process(target=q.put, args=(1,)); p.start(); print(q.get()); p.join()\n"
           "s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname()); print('loopback')\n"
           "import time, locale; print(time.strftime('%Z'), locale.setlocale(locale.LC_ALL, ''))\n"
           "import pwd, grp, getpass; print(pwd.getpwuid(__import__('os').getuid()).pw_dir, getpass.getuser())\n"
           "print(len(ssl.create_default_context().get_ca_certs()) >= 0, socket.gethostbyname('localhost'))\n")
    check("Python's ordinary things work", r.status == 0 and "loopback" in r.out and "thread" in r.out, r)
    same("outside as well", outside("import ssl, sqlite3").returncode, 0)
    if outside("import matplotlib").returncode == 0:
        r = py("import matplotlib.pyplot as p; p.plot([1, 2]); p.savefig('/tmp/x.png'); print(open('/tmp/x.png', 'rb').read(4))",
               "--timeout", "60s", "--cpu-time", "60s", "--memory", "1GiB")
        check("matplotlib draws into a file, without a display", "PNG" in r.out, r)
    else:
        skip("matplotlib draws into a file", "it is not installed")


@case
def test_etc():
    r = box("--", "sh", "-c", "cat /etc/passwd; ls -A /etc /etc/ssl; id; getent hosts localhost; hostname; "
            "cat /etc/machine-id /etc/ssl/private/* 2>/dev/null; cat /etc/shadow 2>&1; stat -c 'bytes: %s' /etc/shadow")
    users = [l.split(":")[0] for l in open("/etc/passwd") if int(l.split(":")[2]) >= 1000 and "nobody" not in l]
    # One of them may be called as the box's user is.
    check("no users of the host", not any(f"{u}:" in r.out for u in users if u != "agent"), r)
    check("no keys or machine id", not {"gshadow", "machine-id", "ssh", "sudoers", "private"} & set(r.out.split()), r)
    check("a shadow that is not the host's, and as unreadable", "/etc/shadow: Permission denied" in r.out and
          "bytes: 0\n" in r.out, r)
    check("the user has a name and the host too", "agent" in r.out and "localhost" in r.out, r)
    for tool, arg in (("awk", "BEGIN{exit 0}"), ("cc", "--version")):
        if shutil.which(tool, path=PATH):
            r = box("--", tool, arg)
            check(f"{tool}, a link through /etc, runs", r.status == 0, r)
    if os.path.exists("/usr/bin/java"):
        r = box("--memory", "1GiB", "--timeout", "60s", "--cpu-time", "60s", "--", "java", "-version")
        check("java, whose settings lie in /etc, runs", r.status == 0, r)


@case
def test_nothing_else_of_the_host():
    r = box("--", "sh", "-c", "ls -A /; ls -A /root /home /var /run /mnt /srv /opt /boot /media 2>/dev/null; "
            "find / -xdev -maxdepth 2 -writable ! -type l 2>/dev/null | sort")
    check("the root has only what it needs", not {"boot", "srv", "mnt", "media", "lost+found", "root"} & set(r.out.split()), r)
    r = py("import os; print([p for p in ('/run/docker.sock', '/var/run/docker.sock', '/run/dbus/system_bus_socket', "
           "'/run/systemd/private', '/var/spool/cron', '/dev/mem', '/dev/kmsg', '/dev/fuse', '/dev/kvm', '/dev/sda', "
           "'/sys/kernel', '/proc/kcore') if os.path.exists(p) and (os.access(p, os.R_OK))])")
    same("no sockets of daemons, no devices", r.out.strip(), "[]")


@case
def test_missing_and_wrong_sources():
    p = run("--ro", "/nonexistent/x", "--", "true")
    check("a missing source stops the launch, and is named", p.returncode == 125 and b"/nonexistent/x" in p.stderr, p)
    p = run("--ro", "/", "--", "true")
    check("the whole host is refused", p.returncode == 125, p)
    p = run("-p", "/nonexistent.yaml", "--", "true")
    check("a missing policy stops the launch", p.returncode == 125, p)
    p = run("-p", write("bad.yaml", "pale: 1\nlimits: {wall: [}\n"), "--", "true")
    check("a malformed policy stops the launch, with line and column", p.returncode == 125 and b"bad.yaml:2:" in p.stderr, p)
    # A policy that lies in the workspace is an agent's: nobody asked for it.
    for name in ("pale.yaml", ".pale.yaml", "policy.yaml", ".pale/policy.yaml", "pale.yml", "pale.json"):
        write(f"work/{name}", f"pale: 1\nfiles: [{{path: {outside_file}, from: {outside_file}, access: read}}]\n")
    r = box("--", "cat", outside_file)
    check("a policy in the working directory is not obeyed", r.status == 1 and "outside" not in r.out, r)
    r = box("-p", os.path.join(work, "policy.yaml"), "--", "cat", outside_file)
    same("unless it is named", r.out, "outside\n")


@case
def test_etc():
    """The box's /etc is its own; the policy may add to it, and put something else in the place of its files."""
    conf, tree = write("work/app.conf", "of the host\n"), os.path.join(place, "etc-tree")
    os.mkdir(tree)
    with open(os.path.join(tree, "inner"), "w") as f:
        f.write("inner\n")
    r = box("--ro", f"{conf}:/etc/app.conf", "--ro", f"{tree}:/etc/app.d", "--ro", f"{conf}:/etc/a/b", "--rw", f"{place}/etc-w:/etc/w",
            "--ro", f"{conf}:/etc/hosts", "--hide", "/etc/passwd", "--", "sh", "-c",
            "cat /etc/app.conf /etc/app.d/inner /etc/a/b /etc/hosts; echo new >/etc/w/x && cat /etc/w/x; cat /etc/passwd; echo x >/etc/y")
    same("files and directories stand in /etc, and nothing can be written beside them",
         (r.out, "/etc/y" in r.err), ("of the host\ninner\nof the host\nof the host\nnew\n", True))
    for what, path in ((tree, "/etc/passwd"), (conf, "/etc/alternatives/x"), (conf, "/etc/mtab")):
        r = box("--ro", f"{what}:{path}", "--", "true")
        check(f"not on, or in, what is another kind of thing: {path}", r.status == 125 and path in r.err, r)


done()
