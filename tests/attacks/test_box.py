#!/usr/bin/python3
"""From inside a box: the first process, inherited descriptors, what is hidden, what namespaces within the box
could uncover, and a host that changes the tree while the box is set up."""
import threading

from attacked import *

work = os.path.join(place, "work")
os.makedirs(os.path.join(work, "dir/inner"))
os.mkdir(os.path.join(work, "sub"))
SECRET = "canary-" + os.urandom(8).hex()
for name in ("dir/secret", "dir/inner/secret", "file"):
    with open(os.path.join(work, name), "w") as f:
        f.write(SECRET)
HIDE = ("--hide", os.path.join(work, "dir"), "--hide", os.path.join(work, "file"))


def tree():
    seen = {}
    for top, dirs, files in os.walk(work):
        for n in dirs + files:
            p = os.path.join(top, n)
            seen[p] = open(p).read() if os.path.isfile(p) and not os.path.islink(p) else "dir"
    return seen


@case
def test_first_process():
    r = attack("box/first_process")
    check("the first process cannot be reached in any way", r.out == "tried\n", r)
    told = {e.get("call") for e in r.events if e["event"] == "call.denied"}
    check("and the calls are told", {"pidfd_getfd", "process_vm_readv", "setns", "ptrace"} <= told, told)
    own = subprocess.Popen(["sleep", "20"])
    o = outside("box/first_process", str(own.pid))
    own.kill()
    own.wait()
    # (The descriptor 0 of ours, its directories, its memory.)
    check("outside a process of one's own can be", {b"cwd", b"environ", b"mem for writing"} <= set(o.stdout.split(b"\n")), o.stdout)


@case
def test_descriptors():
    fds = [os.open("/", os.O_RDONLY), os.open("/etc/passwd", os.O_RDONLY)]
    a, b = __import__("socket").socketpair()
    keep = [*fds, a.fileno(), b.fileno()]
    for fd in keep:
        os.set_inheritable(fd, True)
    program = os.path.join(programs, "box/descriptors")
    p = subprocess.run([pale, "run", "-q", "--ro", program, "--", program], env=env, stdin=b, stdout=subprocess.PIPE, pass_fds=keep,
                       stderr=subprocess.PIPE, timeout=30, check=False)
    check("nothing but three pipes is there, whatever the caller had", p.stdout == b"tried\n", p)
    p = subprocess.run([program], stdin=b, stdout=subprocess.PIPE, pass_fds=keep, timeout=30, check=False)
    check("outside all of it is", p.stdout.count(b"is open") >= 4 and b"is a socket" in p.stdout and
          b"leads to a directory" in p.stdout, p.stdout)
    p = subprocess.run([pale, "run", "-t", "--ro", program, "--", program], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       pass_fds=keep, timeout=30, check=False)
    check("with a terminal the same", p.stdout.replace(b"\r", b"") == b"tried\n", p.stdout)


HIDDEN = f"""
import os
W = {work!r}
def t(name, f):
    try: r = f()
    except OSError: return
    if r: print("WORKED", name, r)
t("read", lambda: open(W + "/file").read())
t("list", lambda: os.listdir(W + "/dir"))
t("write", lambda: open(W + "/file", "w").write("x"))
t("create", lambda: str(open(W + "/dir/new", "w")))
t("mkdir", lambda: os.mkdir(W + "/dir/new") is None)
for what in ("file", "dir"):
    t("unlink " + what, lambda: os.unlink(W + "/" + what) is None)
    t("rmdir " + what, lambda: os.rmdir(W + "/" + what) is None)
    t("rename " + what, lambda: os.rename(W + "/" + what, W + "/away") is None)
    t("link " + what, lambda: os.link(W + "/" + what, W + "/other") is None)
    t("rename over " + what, lambda: (open(W + "/evil", "w"), os.mkdir(W + "/evild"),
                                      os.rename(W + ("/evil" if what == "file" else "/evild"), W + "/" + what)) is not None)
    t("chmod " + what, lambda: os.chmod(W + "/" + what, 0o777) is None)
t("the parent away", lambda: os.rename(W, W + "2") is None)
t("inside by name", lambda: open(W + "/dir/inner/secret").read())
t("by the working directory", lambda: (os.chdir(W + "/dir"), open("inner/secret").read()))
t("by a descriptor", lambda: os.open("dir/secret", 0, dir_fd=os.open(W, os.O_PATH)))
t("by proc", lambda: open("/proc/self/root" + W + "/dir/secret").read())
t("by dots", lambda: open(W + "/sub/../dir/secret").read())
os.symlink(W + "/dir", "/tmp/l")
t("by a link", lambda: open("/tmp/l/secret").read())
for top, dirs, files in os.walk("/"):
    dirs[:] = [d for d in dirs if os.path.join(top, d) not in ("/proc", "/usr", "/sys")]
    for f in files:
        try: text = open(os.path.join(top, f), errors="replace").read(4096) if os.path.isfile(os.path.join(top, f)) else ""
        except OSError: continue
        if {SECRET!r} in text: print("FOUND", os.path.join(top, f))
print("tried")
"""


@case
def test_hidden():
    before = tree()
    for flag in ("--ro", "--overlay"):
        r = Run(flag, work, *HIDE, "--", PYTHON, "-c", HIDDEN)
        check(f"{flag}: what is hidden is not there, and its place cannot be used", r.out == "tried\n", r)
        r = Run(flag, work, "--", PYTHON, "-c", HIDDEN)
        check(f"{flag}: it would be there if it were not hidden", "FOUND" in r.out and "WORKED inside by name" in r.out, r)
    check("nothing of that was on the host", tree() == before)


NESTED = f"""
for m in {work}/dir {work}/file /proc/meminfo /proc/stat /usr /tmp; do umount $m && echo UMOUNTED $m; umount -l $m && echo UMOUNTED $m; done
mount -o remount,bind,rw /usr && echo REMOUNTED; mount -o remount,bind,rw / && echo REMOUNTED; mount -o remount,bind,rw /etc/ssl/certs && echo REMOUNTED
touch /usr/x && echo WROTE; touch /x && echo WROTE
mkdir -p /tmp/b; mount --bind {work} /tmp/b && cat /tmp/b/dir/secret /tmp/b/file && echo BOUND
mount --bind / /tmp/b && echo BOUND
mount -t overlay -o lowerdir={work}:/etc,userxattr o /tmp/b && cat /tmp/b/dir/secret /tmp/b/file
mount --move {work} /tmp/b && cat /tmp/b/dir/secret
for t in proc sysfs cgroup cgroup2 debugfs tracefs securityfs mqueue bpf; do mount -t $t x /tmp/b && echo MOUNTED $t; done
ls -A /.pale /.data /root /data 2>/dev/null && echo REMAINS
mknod /tmp/null c 1 3 && echo DEVICE
cat {work}/dir/secret {work}/dir/inner/secret {work}/file
grep -l {SECRET} -r / --exclude-dir=usr --exclude-dir=proc 2>/dev/null
echo tried
"""


@case
def test_namespaces_within():
    r = Run("--profile", "nested", "--overlay", work, *HIDE, "--", "sh", "-c", 'exec unshare -Urm sh -c "$1" 2>&1', "-", NESTED)
    if "unshare" in r.out and "tried" not in r.out:
        return skip("namespaces in the box", r.out)
    said = [l for l in r.out.splitlines() if l == "tried" or l.split(" ")[0].isupper() or SECRET in l]
    check("root of a namespace within the box uncovers, remounts and binds nothing", said == ["tried"], r.out)
    r = Run("--overlay", work, *HIDE, "--", "sh", "-c", 'exec unshare -Urm sh -c "$1" 2>&1', "-", NESTED)
    check("without the profile there is no such namespace", "tried" not in r.out and r.told(event="call.denied", call="unshare"), r)
    o = subprocess.run(["unshare", "-Urm", "sh", "-c", f"mount --bind {work} /tmp && cat /tmp/file"], capture_output=True, text=True,
                       check=False)
    check("outside such a namespace binds what it likes", o.stdout == SECRET, o)


@case
def test_race_with_the_host():
    """A process of the host swaps what the mounts go to, for links to where they must not go."""
    top, target = os.path.join(place, "race"), os.path.join(place, "elsewhere")
    os.makedirs(os.path.join(top, "a/b"))
    os.mkdir(target)
    stop = False

    def swap():
        real, link, at = os.path.join(top, "real"), os.path.join(top, "link"), os.path.join(top, "a")
        os.symlink(target, link)
        while not stop:
            os.rename(at, real)
            os.rename(link, at)
            os.rename(at, link)
            os.rename(real, at)
    t = threading.Thread(target=swap)
    t.start()
    outcomes = {}
    try:
        writable = write_policy("race", {"files": [{"path": top, "access": "read"}, {"path": f"{top}/a/b", "access": "write"}]})
        for flags in (["-p", writable], ["--overlay", top, "--hide", f"{top}/a/b"],
                      ["--overlay", top, "--ro", f"{work}:{top}/a/b"]) * 12:
            r = Run(*flags, "--", "sh", "-c", f"echo x >{top}/a/b/new; echo x >{target}/new; ls {target} /etc/new; true")
            outcomes[r.status] = outcomes.get(r.status, 0) + 1
            if r.status not in (0, 125) or "new" in r.out:
                check("swapped mount points", False, r)
                break
    finally:
        stop = True
        t.join()
    check(f"mount points swapped for links while the box is set up lead nowhere else {outcomes}",
          not os.listdir(target) and set(outcomes) <= {0, 125}, os.listdir(target))


@case
def test_core_dumps():
    """A box must not feed the host's handler of core dumps: the kernel's word for that is a limit of 1."""
    code = """
import os, resource
for new in ((0, 0), (1, 1), (resource.RLIM_INFINITY,) * 2):
    resource.setrlimit(resource.RLIMIT_CORE, new)
    resource.prlimit(os.getpid(), resource.RLIMIT_CORE, new)
    resource.prlimit(0, resource.RLIMIT_CORE, new)
print(resource.getrlimit(resource.RLIMIT_CORE))
resource.setrlimit(resource.RLIMIT_NOFILE, (50, 50))
print(resource.getrlimit(resource.RLIMIT_NOFILE))
"""
    r = Run("--", PYTHON, "-c", code)
    check("the limit of core dumps cannot be moved, others can", r.out == "(1, 1)\n(50, 50)\n", r)
    r = Run("--", "sh", "-c", "ulimit -c 0; kill -SEGV $$")
    check("a crash leaves none", r.status == 139 and not glob.glob("core*"), r)


@case
def test_destination_swapped():
    """Where a directory is collected to is what it was when the run began."""
    top, target = os.path.join(place, "results"), os.path.join(place, "not-here")
    os.makedirs(os.path.join(top, "a"))
    os.mkdir(target)
    p = subprocess.Popen([pale, "run", "--json", "--rw", f"{top}/a/out:/out", "--", "sh", "-c", "echo x >/out/x; sleep 0.7"], env=env,
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(0.4)
    os.rename(f"{top}/a", f"{top}/real")
    os.symlink(target, f"{top}/a")
    out, err = p.communicate(timeout=30)
    check("a destination behind a link that came meanwhile is refused", not os.listdir(target) and b"symbolic link" in out + err,
          (os.listdir(target), out[-600:], err))
    r = Run("--rw", f"{top}/a/out:/out", "--", "sh", "-c", "echo x >/out/x")
    check("one that was there before is the caller's", r.status == 0 and os.listdir(target) == ["out"], r)


def test_what_the_kernel_tells():
    """Files of /proc and /sys that speak of the caller or the host, or take orders."""
    key = libc_key = None
    if os.uname().machine == "x86_64":
        import ctypes
        key = ctypes.CDLL(None).syscall(248, b"user", SECRET.encode(), b"x", 1, -4)  # the user's keyring
    r = Run("--", "sh", "-c", f"cat /proc/keys; grep -c {SECRET} /proc/keys")
    check("the caller's keys are not listed", SECRET not in r.out, r.out)
    if key and key > 0:
        check("outside they are", SECRET in open("/proc/keys").read())
        import ctypes
        ctypes.CDLL(None).syscall(250, 9, key, -4)
    values = settings()
    code = """
import os
for top, dirs, files in os.walk("/proc/sys"):
    for f in files:
        p = os.path.join(top, f)
        if "/net/" in p: continue
        try: fd = os.open(p, os.O_WRONLY)
        except OSError: continue
        print("WRITABLE", p)
        try: os.write(fd, b"77")
        except OSError: pass
for p in ("/proc/sysrq-trigger", "/proc/kcore", "/proc/kmsg", "/dev/kmsg", "/dev/mem", "/proc/acpi/wakeup", "/proc/mtrr",
          "/sys/kernel/uevent_helper", "/sys/fs/cgroup/cgroup.procs", "/proc/1/oom_score_adj", "/proc/timer_list"):
    for flags in (os.O_RDONLY, os.O_WRONLY):
        try: fd = os.open(p, flags)
        except OSError: continue
        try: print("OPEN", p, flags, os.read(fd, 10) if flags == 0 else "")
        except OSError: pass
print("tried")
"""
    for flags in ([], ["--set", "user=root"], ["--profile", "nested"]):
        r = Run(*flags, "--", PYTHON, "-c", code)
        # Those of its own namespaces are root's there, and bound by the box's limits; one is open to all and
        # asks for a capability at the write.
        own = ("ns_last_pid", "fs/mqueue/", "auto_msgmni", "kernel/msg", "kernel/pid_max", "kernel/sem", "kernel/shm",
               "/proc/1/oom_score_adj")
        other = [l for l in r.out.splitlines() if not any(o in l for o in own)]
        check(f"no setting of the host's can be written {flags}", other == ["tried"], r.out)
    check("and the host's are as they were", settings() == values)


def settings():
    got = {}
    for p in glob.glob("/proc/sys/kernel/[mps]*") + glob.glob("/proc/sys/fs/mqueue/*"):
        try:
            got[p] = open(p).read()
        except (OSError, ValueError):
            pass
    return {p: v for p, v in got.items() if not p.endswith(("pty/nr", "ns_last_pid", "perf_event_max_sample_rate"))}


test_what_the_kernel_tells()
done()
