"""Published ports: servers in a box that the host reaches, and nothing else that it does.

usage: test_inbound.py PALE [--user NAME]
Runs in a network namespace of its own, so that the host's ports are the test's. As root: boxes are root's;
with --user those of that user.
"""
import ctypes
import hashlib
import json
import os
import re
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
from tap import *

args = sys.argv[1:]
user = args[args.index("--user") + 1] if "--user" in args else None
pale = os.path.abspath(args[0])
PYTHON = "/usr/bin/python3"

if os.geteuid() == 0:
    # The host's loopback, without whatever else listens there.
    os.unshare(os.CLONE_NEWNET) if hasattr(os, "unshare") else ctypes.CDLL(None).unshare(0x40000000)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)

place = os.path.realpath(tempfile.mkdtemp(prefix="pale-inbound."))
os.chmod(place, 0o755)
prefix = []
if user:
    shutil.chown(place, user, user)
    prefix = ["setpriv", "--reuid", user, "--regid", user, "--init-groups"]
env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": place, "LANG": "C.UTF-8",
       "PALE_STATE_DIR": os.path.join(place, "state")}
env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})


class Box:
    """A box with published ports, until it is told to end."""

    def __init__(self, *flags, command, wait=True, more=()):
        self.p = subprocess.Popen([*prefix, pale, "run", "--timeout", "60s", *flags, *more, "--", *command], env=env,
                                  cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.err = ""
        self.ports, self.paths = [], []
        n = flags.count("--publish") if wait else 0
        while len(self.ports) + len(self.paths) < n:
            line = self.p.stderr.readline().decode()
            if not line:
                raise AssertionError(f"the box has not started: status {self.p.wait()}, {self.err}")
            self.err += line
            m = re.match(r"pale: port \d+ of the box is at (?:localhost:(\d+)|\"(.*)\")", line)
            if m and m[1]:
                self.ports.append(int(m[1]))
            elif m:
                self.paths.append(m[2])
        # What it says when it listens.
        if wait and self.p.poll() is None:
            self.said = self.p.stdout.readline().decode().strip()

    def end(self, sig=signal.SIGTERM):
        if self.p.poll() is None and sig:
            self.p.send_signal(sig)
        out, err = self.p.communicate(timeout=30)
        self.err += err.decode()
        return self.p.returncode

    def events(self, name):
        runs = os.path.join(env["PALE_STATE_DIR"], "runs")
        newest = max(os.listdir(runs))
        with open(os.path.join(runs, newest, "audit.jsonl")) as f:
            return [e for e in map(json.loads, f) if e["event"] == name]


def server(code):
    return [PYTHON, "-c", "import socket, sys, threading, time\n" + code]


ECHO = server("""
family, address, port = sys.argv[1:] if len(sys.argv) > 1 else ('4', '127.0.0.1', '7000')
s = socket.socket(socket.AF_INET6 if family == '6' else socket.AF_INET)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((address, int(port)))
s.listen(128)
print('ready', flush=True)
def serve(c):
    while True:
        data = c.recv(65536)
        if not data:
            break
        c.sendall(data)
    c.sendall(b'<end>')
    c.close()
while True:
    threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
""")


def connect(at):
    if isinstance(at, str):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(10)
        s.connect(at)
        return s
    return socket.create_connection(at if isinstance(at, tuple) else ("127.0.0.1", at), timeout=10)


def talk(at, data=b"hello"):
    """All that comes back until the other side ends, after our own end: half-closed meanwhile."""
    got = b""
    with connect(at) as s:
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        while True:
            more = s.recv(65536)
            if not more:
                return got
            got += more


def outcome(at):
    try:
        return talk(at)
    except OSError as e:
        return type(e).__name__


@case
def a_raw_echo_at_every_place():
    sock = os.path.join(place, "app.sock")
    box = Box("--publish", "7000", "--publish", "4321:7000", "--publish", f"{sock}:7000", command=ECHO)
    same("it says where before the command runs", (len(box.ports), box.paths), (2, [sock]))
    same("the port that was asked for", box.ports[1], 4321)
    same("IPv4", outcome(box.ports[0]), b"hello<end>")
    same("IPv6", outcome(("::1", box.ports[0])), b"hello<end>")
    same("at the port asked for", outcome(4321), b"hello<end>")
    same("a Unix socket", outcome(sock), b"hello<end>")
    same("for its owner alone", oct(stat.S_IMODE(os.stat(sock).st_mode)), "0o600")
    data = os.urandom(8 << 20)
    got = {}

    def bulk(at):
        with connect(at) as s:
            def feed():
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
            threading.Thread(target=feed).start()
            h, n = hashlib.sha256(), 0
            while True:
                more = s.recv(1 << 16)
                if not more:
                    break
                h.update(more)
                n += len(more)
            got[at] = (n, h.hexdigest())
    want = (len(data) + 5, hashlib.sha256(data + b"<end>").hexdigest())
    bulk(box.ports[0])
    bulk(sock)
    same("many bytes both ways, unchanged", (got[box.ports[0]], got[sock]), (want, want))
    results = []
    threads = [threading.Thread(target=lambda i=i: results.append(talk(box.ports[0], b"%d" % i) == b"%d<end>" % i))
               for i in range(100)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    same("a hundred at a time", results, [True] * 100)
    same("ended by the caller", box.end(), 130)
    check("the socket is gone", not os.path.lexists(sock))
    same("nobody listens any more", outcome(4321), "ConnectionRefusedError")
    told = box.events("network.published")
    same("where is in the log", told[0]["ports"], [{"port": 7000, "host_port": box.ports[0]}, {"port": 7000, "host_port": 4321},
                                                   {"port": 7000, "path": sock}])
    told = box.events("network.inbound")
    same("each connection is an event", sum(e.get("count", 1) for e in told), 106)
    first = told[0]
    same("with where it went, and what came of it", (first["port"], first["address"], first["outcome"], first["bytes_in"],
                                                     first["bytes_out"]), (7000, "127.0.0.1", "connected", 5, 10))
    check("and who it was", first["from"].startswith("127.0.0.1:") and
          any(e["from"].startswith(f"uid {os.getuid()} pid {os.getpid()}") for e in told), told[:6])


@case
def in_the_result():
    p = subprocess.run([*prefix, pale, "run", "--json", "--publish", "7000", "--", "true"], env=env, cwd=place, capture_output=True)
    result = json.loads(p.stdout)
    port = result["published"][0]["host_port"]
    same("the result tells where", result["published"], [{"port": 7000, "host_port": port}])
    check("also while it runs", f"pale: port 7000 of the box is at localhost:{port}" in p.stderr.decode(), p.stderr)


@case
def servers_of_one_family():
    for family, address in (("4", "127.0.0.1"), ("6", "::1"), ("4", "0.0.0.0"), ("6", "::"), ("4", "10.0.2.100")):
        box = Box("--publish", "7001", command=[*ECHO, family, address, "7001"])
        if address == "10.0.2.100":
            same("a server on another address than loopback is not reached", outcome(box.ports[0]), "ConnectionResetError")
        else:
            same(f"a server on {address}, by IPv4", outcome(box.ports[0]), b"hello<end>")
            same(f"a server on {address}, by IPv6", outcome(("::1", box.ports[0])), b"hello<end>")
        box.end()


@case
def real_servers():
    box = Box("--publish", "8000", command=server("""
import http.server
s = http.server.ThreadingHTTPServer(('', 8000), http.server.SimpleHTTPRequestHandler)
print('ready', flush=True)
s.serve_forever()"""))
    p = subprocess.run(["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", f"http://localhost:{box.ports[0]}/"], capture_output=True)
    same("Python's http.server", (p.stdout, p.stderr), (b"200", b""))
    box.end()
    if shutil.which("node", path=env["PATH"]):
        box = Box("--publish", "8001", command=["node", "-e", """
require('http').createServer((q, a) => a.end('node ' + q.url)).listen(8001, () => console.log('ready'))"""],
                  more=("--memory", "1GiB"))
        p = subprocess.run(["curl", "-sS", f"http://localhost:{box.ports[0]}/x", f"http://localhost:{box.ports[0]}/y"], capture_output=True)
        same("node, two requests of one connection", p.stdout, b"node /xnode /y")
        box.end()
    else:
        skip("node", "it is not installed", "node")
    if subprocess.run([PYTHON, "-c", "import websockets"], capture_output=True).returncode == 0:
        box = Box("--publish", "8002", command=[PYTHON, "-c", """
import asyncio, websockets
async def echo(w):
    async for m in w:
        await w.send(m[::-1])
async def main():
    async with websockets.serve(echo, 'localhost', 8002):
        print('ready', flush=True)
        await asyncio.Future()
asyncio.run(main())"""])
        client = f"""
import asyncio, websockets
async def main():
    async with websockets.connect('ws://localhost:{box.ports[0]}/') as w:
        for m in ('abc', 'x' * 100000):
            await w.send(m)
            assert await w.recv() == m[::-1]
    print('well')
asyncio.run(main())"""
        p = subprocess.run([PYTHON, "-c", client], capture_output=True, timeout=20)
        same("a WebSocket server", p.stdout, b"well\n")
        box.end()
    else:
        skip("a WebSocket server", "python3-websockets is not installed", "websockets")


@case
def nothing_listens():
    box = Box("--publish", "7002", command=server("print('ready', flush=True)\ntime.sleep(60)"))
    begun = time.monotonic()
    same("no server: refused", outcome(box.ports[0]), "ConnectionResetError")
    check("at once", time.monotonic() - begun < 5, time.monotonic() - begun)
    for _ in range(8):
        outcome(box.ports[0])
    box.end()
    told = box.events("network.inbound")
    same("an event says why", {(e["outcome"], e["detail"]) for e in told}, {("unreachable", "ECONNREFUSED")})
    check("who tries again is counted", sum(e.get("count", 1) for e in told) == 9 and sum("count" not in e for e in told) <= 2, told)


@case
def a_full_queue():
    box = Box("--publish", "7003", command=server("""
s = socket.socket()
s.bind(('127.0.0.1', 7003))
s.listen(0)
print('ready', flush=True)
time.sleep(1)
while True:
    c, _ = s.accept()
    while c.recv(100):
        pass
    c.sendall(b'late')
    c.close()
"""))
    results = []
    threads = [threading.Thread(target=lambda: results.append(outcome(box.ports[0]))) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    # The kernel may reset what it had no room for, after a while: as without a box between.
    check("a server with a short queue: those who come wait", len(results) == 6 and results.count(b"late") >= 2, results)
    box.end()
    told = box.events("network.inbound")
    same("all were connected", [e["outcome"] for e in told], ["connected"] * 6)


@case
def no_way_out():
    box = Box("--publish", "7004", command=server("""
def attempt(f):
    t = time.monotonic()
    try:
        f()
        return 'got out'
    except OSError as e:
        return f'{type(e).__name__} {time.monotonic() - t < 3}'
print(attempt(lambda: socket.create_connection(('93.184.216.34', 80), 5)), '|',
      attempt(lambda: socket.create_connection(('2606:2800::1', 443), 5)), '|',
      attempt(lambda: socket.getaddrinfo('example.com', 80)), '|',
      attempt(lambda: socket.create_connection(('10.0.2.100', 7004), 5)), flush=True)
time.sleep(60)"""))
    same("a box with published ports and no rules reaches nothing", [re.sub("Permission|ConnectionReset|ConnectionRefused", "", x.strip())
                                                                     for x in box.said.split("|")],
         ["Error True", "Error True", "gaierror True", "Error True"])
    box.end()


@case
def not_the_hosts():
    # A server of the host's at the same port must not be what answers.
    with socket.create_server(("127.0.0.1", 7005)) as host:
        box = Box("--publish", "7005", command=server("""
try:
    socket.create_connection(('127.0.0.1', 7005), 2)
    print('reached', flush=True)
except OSError as e:
    print(type(e).__name__, flush=True)
time.sleep(60)"""))
        same("the host's port is not the box's", box.said, "ConnectionRefusedError")
        # The end may come before the other side's address is asked for, or behind it.
        check("nor the other way round", outcome(box.ports[0]) in ("ConnectionResetError", "OSError"), outcome(box.ports[0]))
        box.end()


def refused(*flags):
    p = subprocess.run([*prefix, pale, "run", *flags, "--", "true"], env=env, cwd=place, capture_output=True)
    return p.returncode, p.stderr.decode()


@case
def what_stands_in_its_place():
    sock = os.path.join(place, "place.sock")
    flag = ("--publish", f"{sock}:7000")
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(sock)
    dead.close()
    if user:
        shutil.chown(sock, user, user)
    box = Box(*flag, command=ECHO)
    same("a leftover that nobody listens on is replaced", outcome(sock), b"hello<end>")
    second = refused(*flag)
    check("one that somebody listens on is not", second[0] == 125 and "a program listens there" in second[1], second)
    same("and goes on", outcome(sock), b"hello<end>")
    box.end()
    with open(sock, "w") as f:
        f.write("mine")
    got = refused(*flag)
    check("a file is not", got[0] == 125 and "no socket" in got[1] and open(sock).read() == "mine", got)
    os.unlink(sock)
    victim = os.path.join(place, "victim")
    for target in (victim, "/nowhere", sock):
        os.symlink(target, sock)
        got = refused(*flag)
        check(f"a link to {target} is not followed", got[0] == 125 and not os.path.lexists(victim) and os.path.islink(sock), got)
        os.unlink(sock)
    os.symlink(place, os.path.join(place, "link"))
    got = refused("--publish", f"{place}/link/x.sock:7000")
    check("a link on the way is not followed", got[0] == 125 and "symbolic link" in got[1] and
          not os.path.lexists(os.path.join(place, "x.sock")), got)
    got = refused("--publish", f"{place}/none/x.sock:7000")
    check("no such directory", got[0] == 125 and "No such file" in got[1], got)
    same("nothing is left behind", [x for x in os.listdir(place) if "sock" in x or x.startswith(".pale")], [])
    box = Box(*flag, command=ECHO)
    os.unlink(sock)
    with open(sock, "w") as f:
        f.write("another's")
    box.end()
    same("what somebody else put there meanwhile stays", open(sock).read(), "another's")
    os.unlink(sock)
    if user:
        dead = socket.socket(socket.AF_UNIX)
        dead.bind(sock)
        dead.close()
        got = refused(*flag)
        check("another user's socket stays", got[0] == 125 and "another user's" in got[1], got)
        os.unlink(sock)


@case
def the_hosts_port_is_taken():
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        s = socket.socket(family)
        s.bind((address, 4322))
        s.listen()
        got = refused("--publish", "4322:7000")
        check(f"another has the port of {address}", got[0] == 125 and address in got[1] and "another program has it" in got[1], got)
        s.close()
    same("then it is free", refused("--publish", "4322:7000")[0], 0)
    if user:
        got = refused("--publish", "80:7000")
        check("a low port is for root", got[0] == 125 and "are for root" in got[1], got)


@case
def what_a_policy_may_say():
    work = os.path.join(place, "work")
    os.mkdir(work)
    if user:
        shutil.chown(work, user, user)
    for flags, words in (
            (("--publish", "0"), "too"), (("--publish", "65536"), "too"), (("--publish", "x"), "expected"),
            (("--publish", "80:"), "expected"), (("--publish", "3128"), "Pale's own"), (("--publish", "53"), "Pale's own"),
            (("--publish", "4000:80", "--publish", "4000:81"), "same place"),
            (("--publish", "80", "-p", "strict"), "no network sockets"),
            (("--overlay", work, "--publish", f"{work}/a.sock:80"), "written back"),
            (("--rw", f"{work}:/out", "--publish", f"{work}/../work/deep/a.sock:80"), "written back")):
        got = refused(*flags)
        check(f"refused: {' '.join(flags)}", got[0] == 125 and words in got[1], got)
    p = subprocess.run([*prefix, pale, "explain", "--publish", "80", "--publish", f"{place}/a.sock:81", "--", "true"], env=env,
                       cwd=place, capture_output=True)
    text = p.stdout.decode()
    check("pale explain says it", "port 80 at a free port" in text and f"port 81 at {place}/a.sock" in text and
          "no way out" in text, text)


def children(pid, name):
    """Descendants of this name, as they are now."""
    found, parents = [], {}
    for d in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{d}/stat") as f:
                head, rest = f.read().rsplit(")", 1)
            parents[int(d)] = (int(rest.split()[1]), head.split("(", 1)[1])
        except OSError:
            pass
    for p, (_, comm) in parents.items():
        at = p
        while at in parents and at != pid:
            at = parents[at][0]
        if at == pid and comm == name:
            found.append(p)
    return found


def until(what, seconds=10):
    end = time.monotonic() + seconds
    while not what() and time.monotonic() < end:
        time.sleep(0.02)
    return what()


@case
def whoever_is_killed():
    sock = os.path.join(place, "kill.sock")
    flags = ("--publish", f"{sock}:7000", "--publish", "4323:7000")
    box = Box(*flags, command=ECHO)
    open_one = connect(4323)
    open_one.sendall(b"x")
    same("it runs", open_one.recv(1), b"x")
    brokers = children(box.p.pid, "pale-egress")
    keepers = children(box.p.pid, "pale-keeper")
    same("a broker and a keeper", (len(brokers), len(keepers)), (1, 1))
    os.kill(box.p.pid, signal.SIGKILL)
    box.p.wait()
    check("the supervisor is killed: its socket is gone", until(lambda: not os.path.lexists(sock)))
    check("nobody listens", until(lambda: outcome(4323) == "ConnectionRefusedError"))
    try:
        open_one.settimeout(5)
        ended = open_one.recv(1) == b""
    except ConnectionResetError:
        ended = True
    check("what was connected ends", ended)
    check("nobody of it lives", until(lambda: not any(os.path.exists(f"/proc/{p}") for p in brokers + keepers)))
    box.p.stdout.close(), box.p.stderr.close()

    box = Box(*flags, command=ECHO)
    os.kill(children(box.p.pid, "pale-egress")[0], signal.SIGKILL)
    same("the broker is killed: so is the box", box.end(sig=None), 125)
    check("which says why", "egress broker" in box.err, box.err)
    check("and nothing is left", not os.path.lexists(sock) and outcome(4323) == "ConnectionRefusedError")

    box = Box(*flags, command=ECHO)
    os.kill(children(box.p.pid, "pale-keeper")[0], signal.SIGKILL)
    same("the keeper is killed: the box goes on", outcome(sock), b"hello<end>")
    box.end()
    check("and its socket goes at the end", not os.path.lexists(sock))


@case
def caps():
    box = Box("--publish", "7000", "--set", "network.connections=3", command=ECHO)
    held = [connect(box.ports[0]) for i in range(3)]
    for s in held:
        s.sendall(b"x")
        s.recv(1)
    same("one more than network.connections", outcome(box.ports[0]), "ConnectionResetError")
    held[0].close()
    check("a place is free again", until(lambda: outcome(box.ports[0]) == b"hello<end>"))
    for s in held[1:]:
        s.close()
    box.end()
    check("the refused one is an event", any(e["outcome"] == "refused" for e in box.events("network.inbound")),
          box.events("network.inbound"))
    box = Box("--publish", "7000", "--set", "network.bytes=100KiB", command=ECHO)
    got = outcome_of_bytes = b""
    try:
        got = talk(box.ports[0], bytes(1 << 20))
    except OSError:
        pass
    check("network.bytes counts what comes in, too", len(got) < 200 << 10, len(got))
    box.end()


shutil.rmtree(place, ignore_errors=True)
done()
