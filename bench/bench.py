"""What a box costs, side by side with its peers in one run, as root and as an unprivileged user.

    bench.py start|syscalls --pale FILE --programs DIR --build DIR --top DIR [--user NAME] [--json] [--rounds N]

`start` measures `true` and `python3 -c 'print(1)'` natively, under our own floor program, bubblewrap,
firejail, crun, runsc and Pale; then the memory of an idle box, and 50 boxes at once. `syscalls`
measures single calls and a real build inside against outside. What cannot be measured here is said
so, with the reason, and is neither a goal met nor missed.
"""
import argparse
import json
import os
import pathlib
import pwd
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

PYTHON = ["/usr/bin/python3", "-c", "print(1)"]
WORKLOADS = {"true": ["true"], "python3": PYTHON}
LINKS = {"/bin": "usr/bin", "/sbin": "usr/sbin", "/lib": "usr/lib", "/lib64": "usr/lib64"}
BWRAP = ["bwrap", "--unshare-all", "--ro-bind", "/usr", "/usr"]
for link, target in LINKS.items():
    BWRAP += ["--symlink", target, link]


class Who:
    """One of the two callers: how to run a command as it, and a directory of its own."""

    def __init__(self, name, user, scratch):
        self.name = name
        self.home = scratch / name
        self.home.mkdir()
        self.prefix = []
        env = {"HOME": str(self.home), "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8",
               "TMPDIR": "/tmp", "PALE_STATE_DIR": str(self.home / "state")}
        if user:
            entry = pwd.getpwnam(user)
            os.chown(self.home, entry.pw_uid, entry.pw_gid)
            self.prefix = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
            env |= {"USER": user, "LOGNAME": user}
        self.uid = entry.pw_uid if user else os.getuid()
        self.gid = entry.pw_gid if user else os.getgid()
        self.env = env

    def run(self, command, timeout=600, **more):
        return subprocess.run(self.prefix + command, env=self.env, cwd="/", timeout=timeout, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", **more)


def bundle(who, name, command):
    """An OCI bundle with the mounts of the others: a read-only /usr, proc, dev, tmp."""
    path = who.home / f"bundle-{name}"
    root = path / "rootfs"
    for folder in ("usr", "proc", "dev", "tmp", "etc"):
        (root / folder).mkdir(parents=True)
    for link, target in LINKS.items():
        (root / link[1:]).symlink_to(target)
    unprivileged = who.uid != 0
    host, size = (who.uid, 1) if unprivileged else (0x7FFF0000, 65536)
    uids = [{"containerID": 0, "hostID": host, "size": size}]
    gids = [{"containerID": 0, "hostID": who.gid if unprivileged else host, "size": size}]
    spec = {
        "ociVersion": "1.0.2",
        "process": {"terminal": False, "user": {"uid": 0, "gid": 0}, "args": command, "cwd": "/",
                    "env": ["PATH=/usr/bin:/bin"], "noNewPrivileges": True},
        "root": {"path": "rootfs", "readonly": False},
        "hostname": "bench",
        "mounts": [
            {"destination": "/usr", "type": "bind", "source": "/usr", "options": ["rbind", "ro"]},
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=64k"]},
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "size=64m"]},
        ],
        "linux": {"namespaces": [{"type": t} for t in ("user", "mount", "pid", "network", "ipc", "uts", "cgroup")],
                  "uidMappings": uids, "gidMappings": gids},
    }
    (path / "config.json").write_text(json.dumps(spec))
    # The container's root must reach and own its root directory.
    subprocess.run(["chmod", "-R", "a+rX", str(who.home)], check=True)
    if unprivileged and os.getuid() == 0:
        subprocess.run(["chown", "-R", f"{who.uid}:{who.gid}", str(path)], check=True)
    elif not unprivileged:
        subprocess.run(["chown", "-R", "-h", f"{host}:{host}", str(root)], check=True)
    return str(path)


def peers(args, who):
    """Name, what it is, command before the workload (or a function of its name), rounds, time-out of the trial."""
    programs = pathlib.Path(args.programs)
    root = str(who.home / "oci")

    def crun(name, command):
        return ["crun", "--cgroup-manager=disabled", "--root", root,
                "run", "--bundle", bundle(who, "crun-" + name, command), f"bench-crun-{os.getpid()}-{who.name}-{name}"]

    def runsc(name, command):
        return ["timeout", "20", "runsc", "--platform=ptrace", "--rootless", "--network=none", "--ignore-cgroups",
                "--root", root + "-runsc", "do", *command]

    firejail = ["firejail", "--quiet", "--noprofile", "--net=none", "--ipc-namespace", "--private-dev",
                "--private-tmp", "--private-cache", "--caps.drop=all", "--nonewprivs", "--seccomp", "--"]
    few = max(3, args.rounds // 20)
    return [
        ("native", lambda n, c: c, args.rounds),
        ("floor", lambda n, c: [str(programs / "bench-floor"), *c], args.rounds),
        ("bubblewrap", lambda n, c: [*BWRAP, "--", *c], args.rounds),
        ("bubblewrap+proc,dev,tmp", lambda n, c: [*BWRAP, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--", *c],
         args.rounds),
        ("firejail", lambda n, c: [*firejail, *c], max(3, args.rounds // 4)),
        ("crun", crun, args.rounds),
        ("runsc (ptrace)", runsc, few),
        ("pale", lambda n, c: [args.pale, "run", "--", *c], args.rounds),
    ]


def trial(who, command):
    """One run of each before they are measured; why not, if it cannot be."""
    if not shutil.which(command[0] if command[0] != "timeout" else command[2], path=who.env["PATH"]) \
            and not os.path.exists(command[0]):
        return "not installed"
    try:
        result = who.run(command, timeout=60)
    except subprocess.TimeoutExpired:
        return "hangs here"
    if result.returncode == 0:
        return None
    said = (result.stderr.strip() or result.stdout.strip() or "no message").splitlines()[-1]
    return f"status {result.returncode}: {said[:90]}"


def measure(args, who, progress):
    """Rows of one caller: {workload: {peer: figures or {"why": text}}}."""
    programs = pathlib.Path(args.programs)
    rows = {}
    for workload, command in WORKLOADS.items():
        found = {}
        line = [str(programs / "bench-runner"), str(args.rounds), ":::", "exec", str(programs / "bench-nothing")]
        apart = {}
        for name, build, rounds in peers(args, who):
            full = build(workload, command)
            why = trial(who, full)
            if why and "cgroups in hybrid mode" in why and os.getuid() == 0:
                apart[name] = (full, rounds)
            elif why:
                found[name] = {"why": why}
            else:
                line += [":::", f"{name}@{rounds}", *full]
        progress(f"{who.name}, {workload}: {args.rounds} rounds")
        result = who.run(line, timeout=1800)
        if result.returncode != 0:
            raise SystemExit(f"bench: the runner failed: {result.stderr}")
        for text in result.stdout.splitlines():
            row = json.loads(text)
            if row["failed"]:
                row["why"] = f"{row['failed']} of {row['failed'] + row['runs']} runs failed, status {row['status']}"
            found[row["name"]] = row
        for name, (full, rounds) in apart.items():
            found[name] = measure_apart(who, [line[0], str(rounds), ":::", name, *full])
        rows[workload] = found
    return rows


def measure_apart(who, line):
    """crun refuses a host with both cgroup versions: in a mount namespace without the second one, and so not
    interleaved with the others."""
    hide = ["unshare", "--mount", "sh", "-c", 'umount /sys/fs/cgroup/unified && exec "$@"', "sh"]
    result = subprocess.run(hide + who.prefix + line, env=who.env, cwd="/", timeout=600, stdin=subprocess.DEVNULL,
                            capture_output=True, text=True)
    if result.returncode != 0:
        return {"why": f"refuses a host with both cgroup versions; {result.stderr.strip()[:80]}"}
    row = json.loads(result.stdout)
    if row["failed"]:
        row["why"] = f"{row['failed']} of {row['failed'] + row['runs']} runs failed, status {row['status']}"
    else:
        row["note"] = "measured apart, /sys/fs/cgroup/unified hidden"
    return row


def pss_kib(pid):
    for line in open(f"/proc/{pid}/smaps_rollup", encoding="ascii"):
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0


def children(pid):
    return [int(c) for t in os.listdir(f"/proc/{pid}/task")
            for c in open(f"/proc/{pid}/task/{t}/children", encoding="ascii").read().split()]


def idle_memory(args, who):
    """PSS of the supervisor and of the first process of an idle box, in KiB; or why not."""
    with subprocess.Popen(who.prefix + [args.pale, "run", "--", "sleep", "30"], env=who.env, cwd="/",
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as box:
        try:
            for _ in range(200):
                time.sleep(0.02)
                inits = [p for p in children(box.pid) if children(p)] if box.poll() is None else []
                if inits and any("sleep" in open(f"/proc/{c}/cmdline").read() for p in inits for c in children(p)):
                    break
            else:
                return {"why": "the box did not come up"}
            time.sleep(1.5)  # idle: it gives back what starting took after half a second
            return {"supervisor_kib": pss_kib(box.pid), "init_kib": sum(pss_kib(p) for p in inits)}
        except PermissionError:
            return {"why": "only root may read the memory of the first process"}
        finally:
            box.terminate()


def at_once(args, who, count=50):
    start = time.monotonic()
    boxes = [subprocess.Popen(who.prefix + [args.pale, "run", "--", "sh", "-c", "sleep 0.5; echo $((6*7))"], env=who.env,
                              cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
             for _ in range(count)]
    good, said = 0, ""
    for box in boxes:
        out, err = box.communicate(timeout=120)
        if box.returncode == 0 and out == "42\n":
            good += 1
        else:
            said = err.strip().splitlines()[-1] if err.strip() else f"status {box.returncode}"
    return {"good": good, "of": count, "seconds": round(time.monotonic() - start, 2), "why": said}


def goal(text, value, limit, met):
    return {"goal": text, "value": value, "limit": limit, "met": met}


def start_goals(who, rows, memory, many):
    goals = []
    true = rows["true"]

    def p50(name):
        row = true.get(name, {})
        return row.get("p50_us") if not row.get("why") else None

    pale, bwrap, floor, one = p50("pale"), p50("bubblewrap"), p50("floor"), p50("exec")
    if pale and bwrap:
        goals.append(goal(f"{who}: pale / bubblewrap, p50 of true", round(pale / bwrap, 2), 0.6, pale / bwrap <= 0.6))
    if pale and floor and one:
        ratio = pale / (floor + one)
        goals.append(goal(f"{who}: pale / (floor + one exec), p50 of true", round(ratio, 2), 1.3, ratio <= 1.3))
    if "why" not in memory:
        total = memory["supervisor_kib"] + memory["init_kib"]
        goals.append(goal(f"{who}: supervisor + init, idle, KiB PSS", total, 2000, total < 2000))
    goals.append(goal(f"{who}: boxes started at once that succeed", many["good"], many["of"], many["good"] == many["of"]))
    return goals


def print_start(result):
    for who, part in result["callers"].items():
        for workload, rows in part["rows"].items():
            native = rows.get("native", {}).get("p50_us")
            print(f"\n{workload}, as {who}" + " " * 12 + f"{result['rounds']} rounds, interleaved; times in ms")
            print(f"  {'':<26}{'p50':>9}{'p95':>9}{'CPU':>9}{'x native':>10}{'x bwrap':>9}{'runs':>7}")
            bwrap = rows.get("bubblewrap", {})
            bwrap = bwrap.get("p50_us") if not bwrap.get("why") else None
            for name in ("exec", "native", "floor", "bubblewrap", "bubblewrap+proc,dev,tmp", "firejail", "crun",
                         "runsc (ptrace)", "pale"):
                row = rows.get(name)
                if row is None:
                    continue
                if "p50_us" not in row or not row["runs"]:
                    print(f"  {name:<26}not measured: {row['why']}")
                    continue
                cells = f"{row['p50_us'] / 1000:>9.2f}{row['p95_us'] / 1000:>9.2f}{row['cpu_us'] / 1000:>9.2f}"
                cells += f"{row['p50_us'] / native:>10.2f}" if native else f"{'':>10}"
                cells += f"{row['p50_us'] / bwrap:>9.2f}" if bwrap else f"{'':>9}"
                print(f"  {name:<26}{cells}{row['runs']:>7}{'  ' + (row.get('why') or row.get('note')) if row.get('why') or row.get('note') else ''}")
        memory, many = part["memory"], part["at_once"]
        if "why" in memory:
            print(f"\nmemory of an idle box, as {who}: not measured: {memory['why']}")
        else:
            print(f"\nmemory of an idle box, as {who}: supervisor {memory['supervisor_kib']} KiB, "
                  f"init {memory['init_kib']} KiB (PSS)")
        print(f"{many['of']} boxes at once, as {who}: {many['good']} succeeded, in {many['seconds']} s"
              + (f" ({many['why']})" if many["good"] != many["of"] else ""))
    print("\n'exec' starts a static program that ends at once; 'floor' is bench/floor.c: the same namespaces and\n"
          "mounts, nothing else. CPU is the process's and its descendants' own; the kernel's later clean-up is not in it.")


def print_goals(goals):
    print(f"\n  {'goal':<52}{'value':>9}{'goal':>9}")
    for g in goals:
        print(f"  {g['goal']:<52}{g['value']:>9}{g['limit']:>9}  {'met' if g['met'] else 'MISSED'}")


def bench_start(args, callers, progress):
    result = {"rounds": args.rounds, "callers": {}, "goals": []}
    for who in callers:
        rows = measure(args, who, progress)
        progress(f"{who.name}: memory, 50 at once")
        memory, many = idle_memory(args, who), at_once(args, who)
        result["callers"][who.name] = {"rows": rows, "memory": memory, "at_once": many}
        result["goals"] += start_goals(who.name, rows, memory, many)
    return result


def bench_syscalls(args, callers, progress):
    """Each call and each build alternately outside and inside."""
    result = {"callers": {}, "goals": []}
    program = str(pathlib.Path(args.programs) / "bench-syscalls")
    for who in callers:
        inside = [args.pale, "run", "--ro", program, "--memory", "1GiB", "--cpus", "2", "--processes", "256", "--"]
        samples = {"outside": {}, "inside": {}}
        progress(f"{who.name}: system calls")
        for _ in range(args.passes):
            for place, command in (("outside", [program]), ("inside", [*inside, program])):
                done = who.run(command)
                if done.returncode != 0:
                    raise SystemExit(f"bench: {' '.join(command)}: {done.stderr}")
                for line in done.stdout.splitlines():
                    name, ns = line.split()
                    samples[place].setdefault(name, []).append(float(ns))
        rows = {name: {"outside_ns": statistics.median(values), "inside_ns": statistics.median(samples["inside"][name])}
                for name, values in samples["outside"].items()}

        # The sources lie where both callers can read them, and at the same path inside.
        source = who.home / "source"
        for part in ("include", "src", "bench"):
            shutil.copytree(pathlib.Path(args.top) / part, source / part)
        built = pathlib.Path(args.build) / "src"
        for header in built.rglob("*.h"):  # what the build generates
            target = source / "generated" / header.relative_to(built)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(header, target)
        subprocess.run(["chmod", "-R", "a+rX", str(source)], check=True)
        script = f'rm -rf /tmp/pale-bench-$$; mkdir /tmp/pale-bench-$$ && make -s -j2 -f {source}/bench/build.mk ' \
                 f'TOP={source} OUT=/tmp/pale-bench-$$ && rm -rf /tmp/pale-bench-$$'
        build_in = [args.pale, "run", "--ro", str(source), "--memory", "2GiB", "--cpus", str(os.cpu_count()),
                    "--processes", "256", "--timeout", "10m", "--set", "limits.cpu=20m", "--", "sh", "-c", script]
        times = {"outside": [], "inside": []}
        for number in range(args.passes):
            progress(f"{who.name}: a build, {number + 1} of {args.passes}")
            order = [("outside", ["sh", "-c", script]), ("inside", build_in)]
            for place, command in order if number % 2 == 0 else reversed(order):
                start = time.monotonic()
                done = who.run(command)
                if done.returncode != 0:
                    raise SystemExit(f"bench: the build {place} failed: {done.stderr[-2000:]}")
                times[place].append(time.monotonic() - start)
        # The fastest pass of each: what else the machine does only ever adds.
        outside, inside = (min(times[p]) for p in ("outside", "inside"))
        extra = round((inside / outside - 1) * 100, 2)
        result["callers"][who.name] = {"calls": rows, "build": {"outside_s": outside, "inside_s": inside, "percent": extra,
                                                               "all": times}}
        result["goals"].append(goal(f"{who.name}: a build inside takes more, percent", extra, 3, extra < 3))
    return result


def print_syscalls(result):
    for who, part in result["callers"].items():
        print(f"\nas {who:<24}{'outside':>12}{'inside':>12}{'ratio':>8}")
        for name, row in part["calls"].items():
            print(f"  {name:<25}{row['outside_ns']:>9.0f} ns{row['inside_ns']:>9.0f} ns"
                  f"{row['inside_ns'] / row['outside_ns']:>8.2f}")
        build = part["build"]
        print(f"  {'build of a C project':<25}{build['outside_s']:>9.2f} s {build['inside_s']:>9.2f} s "
              f"{build['inside_s'] / build['outside_s']:>8.3f}")
    print("\nThe build is Pale's own C code, file by file with gcc -O1 and make -j2 (bench/build.mk);\n"
          "the fastest pass of each side. Calls are medians over the passes.")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench")
    parser.add_argument("what", choices=["start", "syscalls"])
    parser.add_argument("--pale", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--programs", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--top", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--user", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--rounds", type=int, default=200, help="starts of each program (200)")
    parser.add_argument("--passes", type=int, default=5, help="passes of the system calls and the build (5)")
    args = parser.parse_args()

    def progress(text):
        print(f"dev: {text}", file=sys.stderr)

    with tempfile.TemporaryDirectory(prefix="pale-bench.") as scratch:
        os.chmod(scratch, 0o755)
        # The programs, where the unprivileged caller can reach them.
        programs = pathlib.Path(scratch) / "bin"
        programs.mkdir()
        for file in [args.pale, *pathlib.Path(args.programs).glob("bench-*")]:
            if os.path.isfile(file):
                shutil.copy(file, programs)
        args.pale, args.programs = str(programs / "pale"), str(programs)
        callers = [Who("root", None, pathlib.Path(scratch))] if os.getuid() == 0 else []
        if args.user or os.getuid() != 0:
            callers.append(Who("user", args.user, pathlib.Path(scratch)))
        result = (bench_start if args.what == "start" else bench_syscalls)(args, callers, progress)
    result["machine"] = {"kernel": os.uname().release, "cpus": os.cpu_count()}
    if args.json:
        print(json.dumps(result, indent=1))
    else:
        (print_start if args.what == "start" else print_syscalls)(result)
        print_goals(result["goals"])
        if os.getuid() != 0:
            print("\nNot measured: root (run ./dev bench as root for both).")
    return 0


if __name__ == "__main__":
    sys.exit(main())
