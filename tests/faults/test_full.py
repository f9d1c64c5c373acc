#!/usr/bin/python3
"""Nothing is left of what a run needs: disk, descriptors, processes, memory, /proc. A little more each time, so that
it ends at another place.
"""
import resource

from faults import *

if root and "PALE_FAULTS_MOUNTS" not in os.environ:
    clean_up()
    os.environ["PALE_FAULTS_MOUNTS"] = "own"
    os.execvp("unshare", ["unshare", "-m", "--propagation", "private", sys.executable, *sys.argv])

normal = normal_box()
NETWORK = ["--allow", "example.com"]


def fine_or_refused(what, runs, normal=normal):
    """Each run keeps the promise, and both ends were met: some are refused, and the last has what it needs."""
    wrong, refused, last = [], 0, None
    for how, last in runs:
        why = last.wrong(normal)
        refused += last.status == 125
        if why:
            wrong.append(f"{how}: {why}: {last}")
    check(f"{what}: {refused} launches are refused, none is a hole", not wrong and refused, "\n".join(wrong))
    check(f"{what}: the last had what it needs", last.status == 0, last)


def newest_log():
    return open(max(glob.glob(os.path.join(state, "runs", "*", "audit.jsonl"))), encoding="utf-8").read()


def limits(which, values):
    """With a lower soft limit: the hard one is what boxes are given."""
    for n in values:
        yield n, Faulty(None, preexec_fn=lambda: resource.setrlimit(which, (n, resource.getrlimit(which)[1])))


@case
def test_descriptors():
    fine_or_refused("no descriptors", limits(resource.RLIMIT_NOFILE, [*range(3, 64, 1 if ALL else 5), 256]))
    nothing_left("no descriptors")


@case
def test_processes():
    def in_group(n):
        with open(os.path.join(group, "cgroup.procs"), "w") as f:
            f.write(str(os.getpid()))

    if not root:
        own = sum(os.stat(p).st_uid == os.geteuid() for p in glob.glob("/proc/[0-9]*") if os.path.exists(p))
        fine_or_refused("no processes", limits(resource.RLIMIT_NPROC, [1, *range(own, own + 6), own + 500]))
        return nothing_left("no processes")
    group = f"/sys/fs/cgroup/pids/pale-faults-{os.getpid()}"
    if not os.path.isdir("/sys/fs/cgroup/pids"):
        return skip("no processes", "no pids controller of version 1")
    os.mkdir(group)

    def grouped():
        for n in [*range(1, 8), 500]:
            with open(os.path.join(group, "pids.max"), "w") as f:
                f.write(str(n))
            yield n, Faulty(None, preexec_fn=lambda: in_group(n))
    try:
        fine_or_refused("no processes", grouped())
        nothing_left("no processes")
    finally:
        wait_for_none(lambda: os.path.isdir(group) and open(os.path.join(group, "cgroup.procs")).read())
        os.rmdir(group)


@case
def test_memory():
    """By address space, where what is missing is an error; and by control group, where it is the killer."""
    # The kernel, or the C library, ends a program for which there is not even room to start.
    fine_or_refused("no address space", [(n, r) for n, r in limits(
        resource.RLIMIT_AS, [m << 17 for m in range(50, 80, 1 if ALL else 2)] + [1 << 32])
        if (r.status != -signal.SIGSEGV or r.said) and not (r.status == 127 and r.said.startswith("Fatal glibc error"))])
    nothing_left("no address space")
    if not root:
        return skip("no memory for the supervisor", "it takes root", "root")
    if not os.path.isdir("/sys/fs/cgroup/memory"):
        return skip("no memory for the supervisor", "no memory controller of version 1")
    group = f"/sys/fs/cgroup/memory/pale-faults-{os.getpid()}"

    def in_group():
        with open(os.path.join(group, "cgroup.procs"), "w") as f:
            f.write(str(os.getpid()))
    os.mkdir(group)
    try:
        wrong, killed, r = [], 0, None
        for n in [*range(200, 2600, 100 if ALL else 400), 1 << 20]:
            with open(os.path.join(group, "memory.limit_in_bytes"), "w") as f:
                f.write(f"{n}K")
            r = Faulty(None, preexec_fn=in_group)
            killed += r.status == -signal.SIGKILL
            # The supervisor, or what was in the box, which is a limit's end.
            why = None if r.status in (-signal.SIGKILL, 124, 137) and "HOLE" not in r.out and not r.hangs else r.wrong(normal)
            if why:
                wrong.append(f"{n} KiB: {why}: {r}")
        check(f"no memory for the supervisor: {killed} are killed, none is a hole", not wrong and killed, "\n".join(wrong))
        check("no memory for the supervisor: the last had what it needs", r.status == 0, r)
        nothing_left("no memory for the supervisor")
    finally:
        wait_for_none(lambda: open(os.path.join(group, "cgroup.procs")).read())
        os.rmdir(group)


@case
def test_no_proc():
    without = ["unshare", "-m" if root else "-rm", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    r = Faulty(None, before=without)
    check("no /proc: refused, with the remedy", r.status == 125 and "/proc" in r.said and "mount" in r.said and not r.out, r)
    nothing_left("no /proc")


class Disk:
    """A small disk at a place of ours."""

    def __init__(self, name, options):
        self.path = os.path.join(place, name)
        os.makedirs(self.path, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "small", self.path], check=True)

    def __enter__(self):
        return self.path

    def __exit__(self, *_):
        subprocess.run(["umount", self.path], check=True)


@case
def test_log_disk():
    if not root:
        return skip("a full disk for the log", "it takes root to mount a small one", "root")

    def sizes():
        for kib in [*range(0, 72, 4 if ALL else 12), 4096]:
            with Disk("small", f"size={max(kib, 4)}k") as path:
                if kib == 0:
                    with open(os.path.join(path, "full"), "w") as f:
                        f.write("x" * 4096)
                small = {"PALE_STATE_DIR": os.path.join(path, "state")}
                yield f"{kib} KiB", Faulty(None, more=small)
                subprocess.run(["mount", "-o", "remount,size=64m", path], check=True)
                p = subprocess.run([pale, "run", "--", "true"], env={**env, **small}, capture_output=True, text=True, check=False)
                q = subprocess.run([pale, "audit", "verify", "--all"], env={**env, **small}, capture_output=True, text=True, check=False)
                if p.returncode or q.returncode:
                    check(f"{kib} KiB: with room again, all is well", False, p.stderr + q.stdout + q.stderr)

    def inodes():
        for n in [*range(1, 16, 1 if ALL else 2), 512]:
            with Disk("few", f"size=4m,nr_inodes={n}") as path:
                yield f"{n} inodes", Faulty(None, more={"PALE_STATE_DIR": os.path.join(path, "state")})
    fine_or_refused("a full disk for the log", sizes())
    fine_or_refused("no inodes for the log", inodes())
    nothing_left("a full disk for the log")


@case
def test_runtime_disk():
    """Where the control socket of a box with a network goes."""
    if not root:
        return skip("a full runtime directory", "it takes root to mount a small one", "root")
    other = same(Faulty(None, NETWORK).out)

    def inodes():
        for n in [1, 2, 3, 4, 5, 512]:
            mounted = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o mode=755,nr_inodes={n} none /run && exec "$@"', "sh"]
            yield f"{n} inodes", Faulty(None, NETWORK, before=mounted)
    fine_or_refused("a full runtime directory", inodes(), other)
    nothing_left("a full runtime directory")


@case
def test_output_disk():
    """What is collected finds no room: the command's success is none, and what was there stays."""
    if not root:
        return skip("a full directory for outputs", "it takes root to mount a small one", "root")
    with Disk("out", "size=64k") as path:
        with open(os.path.join(path, "old"), "w") as f:
            f.write("kept")
        write = ["sh", "-c", "head -c 500000 /dev/zero >/out/new; echo changed >/out/old; echo written"]
        r = Faulty(None, ["--rw", f"{path}:/out:1MiB"], ["--", *write])
        check("a full directory for outputs: the run says so, and does not end with 0",
              r.status == 125 and r.out == "written\n" and "No space left" in r.said + newest_log(), r)
        left = sorted(os.listdir(path))
        check("and nothing half is there", left in (["old"], ["new", "old"]) and (
            "new" not in left or os.path.getsize(os.path.join(path, "new")) == 500000), left)
    nothing_left("a full directory for outputs")


done()
