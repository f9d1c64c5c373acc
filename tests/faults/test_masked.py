#!/usr/bin/python3
"""Kernels that lack something, one thing at a time: the launch is refused with the reason, or the run says what is
in its place, or it did without. Each row is a row of docs/kernels.md or what an outer sandbox refuses.
"""
from faults import *

UNTIL = ["-u", "canary"]
OVERLAY = ["--overlay", os.path.join(place, "work")]
NETWORK = ["--allow", "example.com"]
os.mkdir(os.path.join(place, "work"))

# What is masked (inject -m), and what the message says.
REFUSED = [
    ("landlock_create_ruleset", "no Landlock.*best_effort: \\[landlock\\]"),
    ("landlock_create_ruleset:EOPNOTSUPP", "no Landlock.*lsm=landlock"),
    ("landlock_restrict_self:EPERM", "cannot apply Landlock"),
    ("seccomp", "cannot install the seccomp filter"),
    ("seccomp:EINVAL:&1=8", "cannot install the seccomp filter"),  # SECCOMP_FILTER_FLAG_NEW_LISTENER
    ("seccomp:EINVAL:=3", "seccomp notifications"),  # SECCOMP_GET_NOTIF_SIZES
    ("prctl:EINVAL:=38", "no_new_privs"),
    ("prctl:EINVAL:=28", "secure bits"),
    ("prctl:EINVAL:=47", "ambient capabilities"),
    ("clone3", "cannot make the box's namespaces"),
    ("clone3:EPERM", "cannot make the box's namespaces.*pale doctor"),
    ("clone3:ENOSPC", "cannot make the box's namespaces.*pale doctor"),
    ("pidfd_getfd", "pidfd_getfd.*pale doctor"),
    ("close_range", "close_range.*pale doctor"),
    ("close_range:EINVAL:=2=4", "close_range"),  # CLOSE_RANGE_CLOEXEC
    ("mount_setattr", "read-only.*pale doctor"),
    ("open_tree", "cannot clone the mount.*pale doctor"),
    ("move_mount", "cannot mount.*pale doctor"),
    ("memfd_create", "cannot prepare the program.*pale doctor"),
    ("fcntl:EINVAL:=1=1033", "cannot prepare the program"),  # F_ADD_SEALS
    ("mount:EPERM:proc", "refuses a fresh /proc.*systempaths=unconfined"),
    ("mount:ENODEV:devpts", "cannot mount for \"dev/pts\""),
    ("unshare", "network namespace"),
    ("execveat", "cannot start the first process"),
    ("capset:EPERM", "cannot drop the capabilities"),
]
REFUSED_WITH = [
    (OVERLAY, "fsopen:ENODEV:overlay", "overlayfs in a user namespace needs Linux 5.11"),
    (NETWORK, "socket:EPROTONOSUPPORT:=2=12", "network.allow needs nftables.*nf_tables"),  # NETLINK_NETFILTER
    (NETWORK, "landlock_create_ruleset", "no Landlock"),
]
# Of a moment, and what a host without the same says. PR_GET_SPECULATION_CTRL, PR_SCHED_CORE.
YAMA = "/proc/sys/kernel/yama/ptrace_scope"
MOMENT = [
    ("prctl:ENOMEM:=52", "cannot look for the speculation control"),
    ("prctl:EINTR:=62", "cannot look for core scheduling"),
    (f"openat:EMFILE:{YAMA}", "cannot read .*ptrace_scope"),
    (f"openat:ENOMEM:{YAMA}", "cannot read .*ptrace_scope"),
    ("landlock_create_ruleset:ENOMEM", "cannot look for Landlock"),
    ("prctl:EINVAL:=21 clone:EAGAIN", "cannot try a seccomp listener"),  # PR_GET_SECCOMP: as if under a filter
    ("prctl:EINVAL:=21 seccomp:ENOMEM:&1=8", "cannot try a seccomp listener"),
]
LASTING = ["prctl:EINVAL:=52", "prctl:EINVAL:=62", f"openat:ENOENT:{YAMA}", f"openat:EACCES:{YAMA}", "landlock_create_ruleset",
           "prctl:EINVAL:=21 seccomp:EBUSY:&1=8"]
# What there is something else for, or what nobody needs.
DONE_WITHOUT = ["keyctl", "process_vm_readv", "epoll_create1", "timerfd_create", "pidfd_open", "statx"]


def one_line(r):
    return " ".join(r.said.split())


@case
def test_refused():
    normal = normal_box()
    for flags, mask, why in [([], *row) for row in REFUSED] + REFUSED_WITH:
        r = Faulty([*UNTIL, "-m", mask], flags)
        check(f"{mask}{' with ' + flags[0] if flags else ''}: refused, with the reason",
              r.status == 125 and r.failed and r.wrong(normal) is None and re.search(why, one_line(r)) and r.seconds < 18, r)
    # Root's range of ids is found beneath a directory; a user has none.
    r = Faulty([*UNTIL, "-m", "openat2"], OVERLAY)
    check("openat2: refused, with the reason", r.status == 125 and r.failed and "Function not implemented" in r.said, r)
    for mask in DONE_WITHOUT:
        r = Faulty([*UNTIL, "-m", mask])
        check(f"{mask}: it is the same box", r.status == 0 and r.wrong(normal) is None, r)


@case
def test_named():
    """What the policy allows to be weaker is in the result, and only that is weaker."""
    weak = write_policy("weak", {"best_effort": ["landlock"]})
    command = ["--json", *COMMAND]
    r = Faulty([*UNTIL, "-m", "landlock_create_ruleset"], ["-p", weak], command)
    told = json.loads(r.out) if r.status == 0 else {}
    check("without Landlock, where the policy allows that: the result names it",
          "second-lock" in [b["item"] for b in told.get("best_effort", [])], str(r) + r.out)
    check("and nothing else is missing", "HOLE" not in r.out and "landlock: Function not" not in told.get("stdout", ""), r.out)
    p = subprocess.run([INJECT, "-m", "landlock_create_ruleset", pale, "explain", "-p", weak, "--", "true"], env=env,
                       capture_output=True, text=True, check=False)
    check("and the plan says so", p.returncode == 0 and "mounts alone" in p.stdout, p.stdout + p.stderr)


def masks(text):
    """Several, with a blank between."""
    return [word for mask in text.split() for word in ("-m", mask)]


@case
def test_moment():
    """What could not be asked at the moment is no property of the host: no box goes without it, also where the policy
    lets it go without what the host lacks."""
    weak = write_policy("weak-moment", {"best_effort": ["landlock", "events", "core_scheduling", "speculation", "memory", "cpu"],
                                        "kernel": {"core_scheduling": True, "speculation": "strict"}})
    for mask, why in MOMENT:
        r = Faulty([*UNTIL, *masks(mask)], ["-p", weak])
        check(f"{mask}: refused, with the reason", r.status == 125 and r.failed and re.search(why, one_line(r)), r)
    for mask in LASTING:
        r = Faulty([*UNTIL, *masks(mask)], ["-p", weak])
        check(f"{mask}: it is a host without it", r.status == 0 and r.failed and "HOLE" not in r.out, r)


@case
def test_no_kill():
    """Before Linux 5.14 control groups of version 2 have no cgroup.kill: what is in a box is killed one by one."""
    mask = ["openat:ENOENT:$/cgroup.kill", "access:ENOENT:$/cgroup.kill"]
    r = Faulty(["-u", "sh", *[w for m in mask for w in ("-m", m)]], ["--timeout", "1s"],
               ["--", "sh", "-c", "trap '' TERM; for i in 1 2 3 4 5 6 7 8; do setsid sleep 1000 & done; wait; wait"])
    if not r.failed:
        return skip("cgroup.kill: a box ends without it", "control groups are of version 1, or there are none: tests/vm has them")
    check("cgroup.kill: a box ends without it", r.status == 124 and "left " not in r.report, r)


@case
def test_other_root():
    """Root in a user namespace of few ids, but its id is the host's root's, whose the kernel's settings are."""
    if not root:
        return skip("the host's root by another name", "it takes root", "root")
    setting = "/proc/sys/kernel/core_pattern"
    for other in (["unshare", "-r"], ["unshare", "-U", "--map-user=1000", "--map-group=1000"]):
        name = other[-1]
        p = subprocess.run([*other, "sh", "-c", f": >>{setting}"], capture_output=True, check=False)
        check(f"{name}: the host's root by another name may write its settings", p.returncode == 0, p.stderr)
        # Of another number the log's place is not the user's.
        p = subprocess.run([*other, pale, "run", "--", "sh", "-c", f"(: >>{setting}); cat /proc/self/mounts"], env=env,
                           capture_output=True, text=True, timeout=TIMEOUT, check=False)
        check(f"{name}: its box may not, and /proc is read-only", p.returncode == 0 and "Read-only" in p.stderr and
              re.search("^pale /proc proc ro", p.stdout, re.M), p.stdout + p.stderr)
        p = subprocess.run([*other, pale, "run", "--profile", "nested", "--", "true"], env=env, capture_output=True, text=True,
                           timeout=TIMEOUT, check=False)
        check(f"{name}: a box for sandboxes, which write to theirs, is refused", p.returncode == 125 and "nested" in p.stderr, p.stderr)
    r = Faulty((), before=["unshare", "-r"])
    check("nothing else is missing in it", r.status == 0 and r.out.endswith("done\n") and "writing to /proc/sys" not in r.out, r)


@case
def test_doctor():
    """The doctor names what is missing."""
    for mask, name in [("landlock_create_ruleset", "andlock"), ("clone3", "namespace"), ("seccomp", "seccomp")]:
        p = subprocess.run([INJECT, "-m", mask, pale, "doctor"], env=env, capture_output=True, text=True, timeout=TIMEOUT, check=False)
        check(f"{mask}: the doctor finds it", p.returncode != 0 and name in p.stdout, p.stdout + p.stderr)


nothing_left("kernels that lack something")
done()
