"""What the network costs through a box, beside its peers, in one run.

    egress.py --pale FILE --peer FILE [--user NAME] [--srt FILE] [--json]

Root only: it makes two network namespaces, joined by a veth pair. In one is the machine, in the other a
server at a public-looking address (93.184.216.34), since that is what a sandbox lets its code reach. The
same client (egress_peer.c) measures each way to it: direct, through Pale, through slirp4netns and pasta
(which let everything through), and through the proxy of @anthropic-ai/sandbox-runtime, if it is there.
All but "direct" run as an unprivileged user.

`connect` is the time of connect(), closed at once; `echo` of connect() and a byte there and back; `bulk`
one connection's throughput to the client; `many` connections open at a time, each with an echo;
`requests` of HTTP a second over eight connections, which Pale looks into by a rule with methods (the others
but srt's proxy pass the bytes on). CPU is that
of the whole machine during `bulk`, client and server included. `start` is the time of a whole run of
`true`, with and without network rules.
"""
import argparse
import ctypes
import json
import os
import pwd
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

SERVER, PORT, HTTP_PORT, NAME = "93.184.216.34", 9090, 9091, "bench.example.com"
CLONE_NEWNS, CLONE_NEWNET, MS_REC_PRIVATE, MS_BIND = 0x20000, 0x40000000, (1 << 18) | 16384, 4096
libc = ctypes.CDLL(None, use_errno=True)


def call(name, *args):
    if getattr(libc, name)(*args) != 0:
        raise OSError(ctypes.get_errno(), name)


def ip(*command):
    subprocess.run(["ip", *command], check=True)


def namespaces(peer, place):
    """This process becomes the machine; the server's process id."""
    call("unshare", CLONE_NEWNS | CLONE_NEWNET)
    call("mount", b"none", b"/", None, ctypes.c_ulong(MS_REC_PRIVATE), None)
    r, w = os.pipe()
    server = os.fork()
    if server == 0:
        libc.prctl(1, signal.SIGKILL, 0, 0, 0)
        call("unshare", CLONE_NEWNET)
        os.write(w, b"n")
        while not os.path.exists(f"/proc/self/net/dev") or "net0" not in open("/proc/self/net/dev").read():
            time.sleep(0.01)
        ip("link", "set", "lo", "up")
        ip("link", "set", "net0", "up")
        ip("addr", "add", "192.168.77.1/24", "dev", "net0")
        ip("addr", "add", SERVER + "/32", "dev", "lo")
        os.dup2(w, 1)
        if os.fork() == 0:
            libc.prctl(1, signal.SIGKILL, 0, 0, 0)
            os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
            os.execl(peer, peer, "serve", str(HTTP_PORT))
        os.execl(peer, peer, "serve", str(PORT))
    os.read(r, 1)
    ip("link", "add", "eth0", "type", "veth", "peer", "name", "net0", "netns", str(server))
    ip("link", "set", "lo", "up")
    ip("link", "set", "eth0", "up")
    ip("addr", "add", "192.168.77.2/24", "dev", "eth0")
    ip("route", "add", "default", "via", "192.168.77.1")
    os.read(r, 5)  # "ready"
    for target, text in (("/etc/hosts", f"127.0.0.1 localhost\n{SERVER} {NAME}\n"), ("/etc/resolv.conf", "")):
        path = os.path.join(place, os.path.basename(target))
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, 0o644)
        call("mount", path.encode(), target.encode(), None, ctypes.c_ulong(MS_BIND), None)
    return server


def cpu_s():
    """Of the whole machine, but for waiting."""
    with open("/proc/stat") as f:
        t = [int(x) for x in f.readline().split()[1:]]
    return (sum(t[:8]) - t[3] - t[4]) / os.sysconf("SC_CLK_TCK")


def slirp(command):
    """slirp4netns wants the id of a process in the new namespace."""
    return ["unshare", "-rn", "sh", "-c",
            'exec 3<&0; (nsenter --version >/dev/null; :) ; ip link set lo up; echo $$ > "$PIDFILE"; '
            'while ! grep -q tap0 /proc/net/dev || ! ip route | grep -q default; do sleep 0.01; done; exec "$@"', "sh", *command]


class Way:
    def __init__(self, name, wrap, env=None, before=None):
        self.name, self.wrap, self.env, self.before = name, wrap, env or {}, before

    def run(self, command, home, user):
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": home, "PALE_STATE_DIR": home + "/state",
               "PIDFILE": home + "/pid", **self.env}
        prefix = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"] if user and self.name != "direct" else []
        helper = None
        if self.before:
            try:
                os.unlink(home + "/pid")
            except FileNotFoundError:
                pass
        p = subprocess.Popen(prefix + self.wrap(command), env=env, cwd=home, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        if self.before:
            while not os.path.exists(home + "/pid") or not open(home + "/pid").read().strip():
                if p.poll() is not None:
                    break
                time.sleep(0.01)
            helper = subprocess.Popen(prefix + self.before(open(home + "/pid").read().strip()), stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, cwd=home, env=env)
        try:
            out, err = p.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            p.kill()
            p.communicate()
            return {"error": "no answer in 120 s"}
        finally:
            if helper:
                helper.kill()
                helper.wait()
        lines = [x for x in out.splitlines() if x.startswith("{")]
        if p.returncode or not lines:
            return {"error": (err.strip() or out.strip() or f"exit status {p.returncode}").splitlines()[-1][:200]}
        return json.loads(lines[-1])


def measure(way, args, home):
    peer = [args.peer, NAME, str(PORT)]
    # First: "many" is too much for some.
    result = {"requests": way.run([args.peer, NAME, str(HTTP_PORT), "requests", str(args.rounds * 10)], home, args.user)}
    for what, n in (("connect", args.rounds), ("echo", args.rounds), ("many", 2000)):
        result[what] = way.run([*peer, what, str(n)], home, args.user)
    best = None
    for _ in range(3):
        before = cpu_s()
        one = way.run([*peer, "bulk", str(args.mib)], home, args.user)
        if "error" in one:
            best = best or one
            continue
        one["cpu_s_per_gb"] = round((cpu_s() - before) / (args.mib / 1024), 2)
        if not best or "error" in best or one["mb_s"] > best["mb_s"]:
            best = one
    result["bulk"] = best
    return result


def starts(args, home, policy):
    """Whole runs of `true`, in turns."""
    times = {"without": [], "with": []}
    for _ in range(60):
        for name, more in (("without", []), ("with", ["--policy", policy])):
            start = time.monotonic()
            p = subprocess.run(["setpriv", f"--reuid={args.user}", f"--regid={args.user}", "--init-groups", args.pale, "run",
                                *more, "--", "/usr/bin/true"], cwd=home, capture_output=True,
                               env={"PATH": "/usr/bin:/bin", "HOME": home, "PALE_STATE_DIR": home + "/state"})
            if p.returncode:
                return {"error": p.stderr.decode(errors="replace")[:200]}
            times[name].append((time.monotonic() - start) * 1e3)
    return {k: round(statistics.median(v), 2) for k, v in times.items()}


def main():
    parser = argparse.ArgumentParser(prog="./dev bench egress")
    parser.add_argument("--pale", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--peer", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--user", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--srt", help="the program srt of the npm package @anthropic-ai/sandbox-runtime")
    parser.add_argument("--rounds", type=int, default=2000, help="connections of each kind (2000)")
    parser.add_argument("--mib", type=int, default=2048, help="bytes of a bulk transfer, in MiB (2048)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("egress: root only: it makes network namespaces")
    user = pwd.getpwnam(args.user)
    place = tempfile.mkdtemp(prefix="pale-bench-egress.")
    os.chmod(place, 0o755)
    home = place + "/home"
    os.mkdir(home)
    os.chown(home, user.pw_uid, user.pw_gid)
    args.pale = os.path.realpath(args.pale)
    # Where the user can read it.
    shutil.copy(args.peer, place + "/peer")
    args.peer = place + "/peer"
    server = namespaces(args.peer, place)
    policy = place + "/policy.yaml"
    with open(policy, "w") as f:
        f.write("pale: 1\nlimits: {wall: 300s, cpu: 200s, cpus: 64, open_files: 4096}\nnetwork:\n  connections: 4000\n"
                f"  allow: [{{host: {NAME}, port: {PORT}, protocol: tcp}},\n"
                f"          {{host: {NAME}, port: {HTTP_PORT}, protocol: http, methods: [GET]}}]\n")
    os.chmod(policy, 0o644)
    srt = args.srt or shutil.which("srt")
    ways = [Way("direct", lambda c: c), Way("pale", lambda c: [args.pale, "run", "--policy", policy, "--", *c]),
            Way("pale, through its proxy", lambda c: [args.pale, "run", "--policy", policy, "--env", "BENCH_PROXY=1", "--env",
                                                      "HTTP_PROXY=http://127.0.0.1:3128", "--", *c])]
    missing = []
    if shutil.which("slirp4netns"):
        ways.append(Way("slirp4netns", slirp, before=lambda pid: ["slirp4netns", "--configure", "--mtu=65520", pid, "tap0"]))
    else:
        missing.append("slirp4netns")
    if shutil.which("pasta"):
        ways.append(Way("pasta", lambda c: ["pasta", "--config-net", "-q", "--", *c]))
    else:
        missing.append("pasta")
    if srt:
        settings = place + "/srt.json"
        with open(settings, "w") as f:
            json.dump({"network": {"allowedDomains": [NAME], "deniedDomains": []},
                       "filesystem": {"denyRead": [], "allowWrite": [home], "denyWrite": []}}, f)
        os.chmod(settings, 0o644)
        ways.append(Way("srt (sandbox-runtime)", lambda c: [srt, "--settings", settings, "-c", "BENCH_PROXY=1 exec " + " ".join(c)]))
    else:
        missing.append("srt")
    figures = {}
    try:
        for way in ways:
            print(f"egress: {way.name}", file=sys.stderr)
            figures[way.name] = measure(way, args, home)
        print("egress: starts", file=sys.stderr)
        start = starts(args, home, policy)
    finally:
        os.kill(server, signal.SIGKILL)
        shutil.rmtree(place, ignore_errors=True)
    if args.json:
        print(json.dumps({"ways": figures, "start_ms": start, "not_measured": missing}, indent=1))
        return
    print(f"{'':26}{'connect µs':>12}{'echo µs':>10}{'bulk MB/s':>11}{'CPU s/GB':>10}{'2,000 at a time':>17}{'requests/s':>12}")
    for name, f in figures.items():
        def cell(what, key, width, form="{}"):
            v = f[what]
            return (form.format(v[key]) if key in v else "-").rjust(width)
        many = f["many"]
        text = f"{many['ok']} in {many['ms']} ms" if "ok" in many else "-"
        print(f"{name:26}{cell('connect', 'p50_us', 12)}{cell('echo', 'p50_us', 10)}{cell('bulk', 'mb_s', 11)}"
              f"{cell('bulk', 'cpu_s_per_gb', 10)}{text:>17}{cell('requests', 'per_s', 12)}")
        for what in f:
            if "error" in f[what]:
                print(f"    {what}: {f[what]['error']}")
    print(f"\na run of true: {json.dumps(start)} ms")
    for name in missing:
        print(f"not measured: {name} is not here")


main()
