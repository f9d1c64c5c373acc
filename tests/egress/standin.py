"""A world to test egress in: a machine with a network, a resolver and an internet, none of them real.

    import standin
    world = standin.enter()          # before any thread is started
    world.run(["curl", "https://www.example.com/"])   # as the user under test
    world.seen("request")            # what arrived at the servers

enter() moves this process into network and mount namespaces of its own (root: as root; others: in a
user namespace in which they stay who they are and keep no capability) and forks one process with a
second network namespace, the "internet", joined by a veth pair. That process holds every server.
Nothing of it is visible outside, and all of it goes with the process: there is nothing to clean up
but `world.place`, which is removed at exit.

    host namespace                                internet namespace
    eth0 192.168.77.2, 2a01:4f8:1::2   --veth--   net0 192.168.77.1, 2a01:4f8:1::1
    lo   81.2.69.142 (a public address            local: 93.184.216.0/24, 2606:2800:220:1::/64,
         of the host's own)                       169.254.0.0/16, 10.20.30.0/24, 100.100.0.0/16, ...
    /etc/resolv.conf -> 93.184.216.53
    /etc/hosts, the host's CA bundle: bind-mounted

Run as a program it gives a shell (or runs a command) in such a world: standin.py [COMMAND...]
"""
import atexit
import ctypes
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from world import zone  # noqa: E402 (its own folder)

libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x20000, 0x10000000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
PR_SET_PDEATHSIG, PR_CAP_AMBIENT = 1, 47
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"


class NotHere(Exception):
    """This machine cannot make such a world; the text says why."""


def _call(name, *args):
    if getattr(libc, name)(*args) != 0:
        raise NotHere(f"{name}{args[-1:]}: {os.strerror(ctypes.get_errno())}")


def _capabilities(keep):
    """In the own user namespace: all of them, for programs that are started too; or none."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    if not keep:
        libc.prctl(PR_CAP_AMBIENT, 4, 0, 0, 0)
        data = (ctypes.c_uint32 * 6)()
    else:
        data = (ctypes.c_uint32 * 6)()
        libc.capget(header, data)
        data[2], data[5] = data[1], data[4]
    if libc.capset(header, data) != 0:
        raise NotHere("capset: " + os.strerror(ctypes.get_errno()))
    for cap in range(41) if keep else ():
        libc.prctl(PR_CAP_AMBIENT, 2, cap, 0, 0)


def _write(path, text):
    with open(path, "w") as f:
        f.write(text)


def bind_mount(source, target):
    _call("mount", os.fsencode(source), os.fsencode(target), None, ctypes.c_ulong(MS_BIND), None)


def _ip(lines):
    for family, part in (("-4", [x for x in lines if not x.startswith("-6 ")]),
                         ("-6", [x[3:] for x in lines if x.startswith("-6 ")])):
        if not part:
            continue
        p = subprocess.run(["ip", family, "-batch", "-"], input="\n".join(part) + "\n", capture_output=True, text=True)
        if p.returncode:
            raise NotHere("ip: " + p.stderr.strip())


def _sysctl(**values):
    for name, value in values.items():
        try:
            _write("/proc/sys/net/" + name.replace("__", "/"), str(value))
        except OSError:
            if name.startswith("ipv4"):
                raise


class World:
    def __init__(self, place, user):
        self.place = place
        self.user = user  # whom programs under test run as, or None: as this process
        self.ca = os.path.join(place, "ca.pem")
        self.ssh_user = pwd.getpwuid(os.geteuid()).pw_name  # who can log in at git.example.com
        self.ssh_key = os.path.join(place, "ssh", "client")
        self.repositories = os.path.join(place, "git")
        self.prefix = []
        if user:
            self.prefix = ["setpriv", "--reuid", user, "--regid", user, "--init-groups"]
        self.control = None
        self.servers = None

    def ask(self, what, **more):
        """One question to the servers' process."""
        self.control.write(json.dumps({"do": what, **more}) + "\n")
        self.control.flush()
        line = self.control.readline()
        if not line:
            raise RuntimeError("the servers of the test's world are gone")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer.get("answer")

    def seen(self, kind=None, **want):
        """What arrived at the servers since clear(): a list of dictionaries with "kind" (connect,
        request, lookup, datagram, canary, ...) and what else there is to say."""
        return [e for e in self.ask("seen") if (kind is None or e["kind"] == kind)
                and all(e.get(k) == v for k, v in want.items())]

    def clear(self):
        self.ask("clear")

    def answer(self, name, **record):
        """Change a name's answers: a=[...], aaaa=[...], ttl=N, how="..." (see world/dns.py), or
        turns=[{...}, {...}]: one after the other, the last for ever."""
        self.ask("zone", name=name, record=record)

    def run(self, command, **more):
        """A program in the host's namespace, as the user under test."""
        more.setdefault("stdin", subprocess.DEVNULL if "input" not in more else None)
        if more["stdin"] is None:
            del more["stdin"]
        return subprocess.run([*self.prefix, *command], capture_output=True, timeout=more.pop("timeout", 60), **more)


def enter(user=None):
    """user: root's worlds only: the unprivileged user whom programs under test run as."""
    root = os.geteuid() == 0
    if user and not root:
        raise ValueError("only root can run programs as another user")
    uid, gid = os.geteuid(), os.getegid()
    place = os.path.realpath(tempfile.mkdtemp(prefix="pale-standin."))
    os.chmod(place, 0o755)
    owner = os.getpid()

    @atexit.register
    def remove():
        if os.getpid() == owner:
            shutil.rmtree(place, ignore_errors=True)

    _call("unshare", CLONE_NEWNS | CLONE_NEWNET | (0 if root else CLONE_NEWUSER))
    if not root:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")
        _capabilities(True)
    _call("mount", b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None)
    _sysctl(ipv4__ip_unprivileged_port_start=0, ipv6__conf__default__accept_dad=0, ipv6__conf__all__accept_dad=0)

    world = World(place, user)
    mine, theirs = socket.socketpair()
    world.servers = os.fork()
    if world.servers == 0:
        mine.close()
        _servers(world, theirs, owner)
    theirs.close()
    world.control = mine.makefile("rw")
    try:
        world.ask("namespace")
        _ip([
            f"link add eth0 type veth peer name net0 netns {world.servers}",
            "link set lo up", "link set eth0 up",
            "addr add 192.168.77.2/24 dev eth0", f"addr add {zone.HOST4}/32 dev lo",
            "route add default via 192.168.77.1",
            "-6 addr add 2a01:4f8:1::2/64 dev eth0 nodad", "-6 route add default via 2a01:4f8:1::1 dev eth0",
        ])
        world.ask("network")
        told = world.ask("serve")
    except Exception:
        mine.close()
        raise
    world.ports = told
    for text, name, target in ((zone.RESOLV_CONF, "resolv.conf", "/etc/resolv.conf"), (zone.HOSTS, "hosts", "/etc/hosts")):
        path = os.path.join(place, name)
        _write(path, text)
        bind_mount(path, os.path.realpath(target))
    bind_mount(world.ca, os.path.realpath(BUNDLE))
    if user:
        shutil.chown(world.ssh_key, user, user)
    if not root:
        _capabilities(False)
    return world


def _servers(world, control, owner):
    """The other process: never returns."""
    code = 1
    try:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != owner:
            os._exit(1)
        os.setpgid(0, 0)  # Ctrl-C is for the test
        from world import serve
        host_side = serve.host_sockets()  # while this is still the host's namespace
        _call("unshare", CLONE_NEWNET)
        _sysctl(ipv4__ip_unprivileged_port_start=0, ipv6__ip_nonlocal_bind=1, ipv6__conf__default__accept_dad=0,
                ipv6__conf__all__accept_dad=0)
        lines = control.makefile("rw")

        def reply(answer):
            lines.write(json.dumps(answer) + "\n")
            lines.flush()

        internet = None
        for line in lines:
            try:
                question = json.loads(line)
                what = question.pop("do")
                answer = None
                if what == "network":
                    _ip(["link set lo up", "link set net0 up", "addr add 192.168.77.1/24 dev net0",
                         "-6 addr add 2a01:4f8:1::1/64 dev net0 nodad",
                         *[f"route add local {net} dev lo" for net in zone.NETWORKS4],
                         f"route add {zone.HOST4} via 192.168.77.2",
                         *[f"-6 route add local {net} dev lo" for net in zone.NETWORKS6]])
                elif what == "serve":
                    internet = serve.Internet(world, host_side)
                    answer = internet.start()
                elif what != "namespace":
                    answer = internet.asked(what, **question)
                reply({"answer": answer})
            except Exception as e:  # told to the test, which decides
                import traceback
                reply({"error": f"{e!r}\n{traceback.format_exc()}"})
        code = 0
    finally:
        os._exit(code)


def main():
    user = None
    args = sys.argv[1:]
    if args[:1] == ["--user"]:
        user = args[1]
        args = args[2:]
    world = enter(user)
    os.environ["STANDIN"] = world.place
    sys.exit(subprocess.run([*world.prefix, *(args or ["/bin/bash", "--norc"])], check=False).returncode)


if __name__ == "__main__":
    main()
