"""Every attack of the corpus works where nothing keeps it from working: outside a box. So "denied" in a box
says something of the box. TAP.

usage: test_attacks.py PALE-ATTACKS

What a machine usually lacks is put up where that is easy: an open proxy, a name server, a descriptor that was
not closed. What only some kernels have is skipped, and said to be.
"""
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "egress"))
from tap import *  # noqa: E402, F401, F403

program = os.path.abspath(sys.argv[1])
root = os.geteuid() == 0

# A limit that the attack exceeds, in its smallest unit.
MAX = {"wall": 100, "cpu": 100, "cpus": 10, "memory": 32 << 20, "processes": 20, "open_files": 100, "disk": 8 << 20,
       "inodes": 100, "file_size": 1 << 20, "output_total": 1 << 20,
       "output": 1 << 16}
MIN_ATTACKS = 150


def pump(a, b):
    try:
        while data := a.recv(4096):
            b.sendall(data)
    except OSError:
        pass
    a.close()
    b.close()


def open_proxy(client):
    """CONNECT, GET and SOCKS 5 to anywhere, as it should not be."""
    try:
        first = client.recv(4096)
        if first[:1] == b"\x05":
            client.sendall(b"\x05\x00")
            q = client.recv(4096)
            host = socket.inet_ntoa(q[4:8]) if q[3] == 1 else q[5:5 + q[4]].split(b"\0")[0].decode()
            answer, rest, port = b"\x05\x00\x00\x01" + bytes(6), b"", int.from_bytes(q[-2:], "big")
        else:
            method, where = first.split(b" ")[:2]
            where = where.decode().removeprefix("http://").rstrip("/")
            host, port = where.rsplit(":", 1)
            host = host.strip("[]")
            answer, rest = (b"HTTP/1.1 200 OK\r\n\r\n", b"") if method == b"CONNECT" else (b"", first)
        if host.isdigit():
            host = socket.inet_ntoa(int(host).to_bytes(4, "big"))
        server = socket.create_connection((host, int(port)), 5)
        client.sendall(answer)
        server.sendall(rest)
        pump(server, client)
    except (OSError, ValueError):
        try:
            client.sendall(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
        except OSError:
            pass
        client.close()


def serve_proxy():
    s = socket.create_server(("127.0.0.1", 0))

    def loop():
        while True:
            threading.Thread(target=open_proxy, args=(s.accept()[0],), daemon=True).start()
    threading.Thread(target=loop, daemon=True).start()
    return s.getsockname()[1]


def serve_names():
    """Answers every question with an address; "" where the port is taken."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        s.bind(("127.0.0.77", 53))
    except OSError:
        return ""

    def loop():
        while True:
            q, peer = s.recvfrom(512)
            s.sendto(q[:2] + b"\x81\x80" + q[4:6] + b"\0\1\0\0\0\0" + q[12:] +
                     b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4\xc0\0\2\1", peer)
    threading.Thread(target=loop, daemon=True).start()
    return "127.0.0.77"


attacks = json.loads(subprocess.run([program, "--list"], capture_output=True, check=True).stdout)
check(f"there are at least {MIN_ATTACKS} attacks", len(attacks) >= MIN_ATTACKS, len(attacks))
check("each has a name of its own", len({a["attack"] for a in attacks}) == len(attacks))
for a in attacks:
    bare = [k for k in ("gain", "source", "promise", "works") if not a.get(k)]
    if bare or a["works"] == "kernel" and not a.get("needs"):
        check(f"{a['attack']} says what it is", False, bare)

# Without what they are aimed at, nothing is denied.
lacking = ["loopback_tcp", "loopback_tcp6", "loopback_udp", "host_address", "shared_memory", "semaphore", "posix_queue",
           "session_key", "host_name", "sysv_shm"]
p = subprocess.run([program, "--run", "shm=", *lacking], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
check("an attack on what was not put up is not here", p.stdout.count(" absent not here") == len(lacking), p.stdout)


def children(parent):
    with open(f"/proc/{parent}/task/{parent}/children", encoding="utf-8") as f:
        return [int(pid) for pid in f.read().split()]


def command(pid):
    with open(f"/proc/{pid}/cmdline", encoding="utf-8") as f:
        return f.read().split("\0")[0]


def ended_by(attack, deadly, *given):
    """What the runner says of an attack that died of this signal."""
    p = subprocess.Popen([program, "--run", *given, attack], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    end = time.monotonic() + 20
    while time.monotonic() < end:
        found = [pid for pid in children(p.pid) if command(pid) == attack]
        if found:
            os.kill(found[0], deadly)
            break
        time.sleep(0.02)
    words = p.communicate()[0].split()
    return words[2] if words else "nothing"


deaf = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
deaf.bind(("127.0.0.1", 0))
deaf_port = f"udp={deaf.getsockname()[1]}"
check("an attack on a limit that is killed was denied", ended_by("wall_sleep", signal.SIGKILL, "max=20000") == "denied")
check("one that dies otherwise is unclear", ended_by("wall_sleep", signal.SIGSEGV, "max=20000") == "unclear")
check("one on another thing that is killed is unclear", ended_by("loopback_udp", signal.SIGKILL, deaf_port) == "unclear")
deaf.close()

os.umask(0o022)
place = tempfile.mkdtemp(prefix="pale-test-attacks-")
os.chmod(place, 0o755)
os.mkdir(os.path.join(place, "host"))
shutil.copy("/bin/sleep", os.path.join(place, "pale-egress"))
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall(250 if os.uname().machine == "x86_64" else 219, 1, None)  # a session keyring, for all of this
host = subprocess.Popen([program, "--host", os.path.join(place, "host")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                        text=True)
egress = subprocess.Popen([os.path.join(place, "pale-egress"), "600"])
limits = {}
try:
    targets = []
    for line in host.stdout:
        if line.strip() == "ready":
            break
        targets.append(line.strip())
    targets += [f"proxy={serve_proxy()}", "allowed=127.0.0.1", "denied=127.0.0.1"]
    names = serve_names() if root else ""
    # In mounts of its own: what an attack does must not stay.
    inside = "mount -t tmpfs none /run && touch /run/docker.sock && mkdir /run/dbus && touch /run/dbus/system_bus_socket; "
    if names:
        inside += f"echo nameserver {names} >/run/resolv.conf && mount --bind /run/resolv.conf $(readlink -f /etc/resolv.conf); "
    prefix = ["unshare", "--mount", "--propagation", "private", "sh", "-c", inside + 'exec "$@"', "sh"] if root else []
    leak = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    for a in attacks:
        if a["works"] == "limit":
            limits[a["attack"]] = subprocess.Popen([program, "--run", *targets, "outside=1", f"max={MAX[a['limit']]}", a["attack"]],
                                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    # What would make it seem to survive comes last.
    rest = sorted((a["attack"] for a in attacks if a["works"] != "limit"), key=lambda n: n.startswith("survive"))
    p = subprocess.run([*prefix, program, "--run", *targets, *rest], capture_output=True, text=True, timeout=100,
                       stdin=subprocess.DEVNULL, pass_fds=[leak], env={**os.environ, "CANARY": "pale-canary-x"}, check=False)
    said = p.stdout + "".join(l.communicate(timeout=60)[0] for l in limits.values())
finally:
    seen = {line.split()[1] for line in host.communicate(timeout=20)[0].splitlines() if line.startswith("broken ")}
    egress.kill()
    egress.wait()
    for process in limits.values():
        process.kill()
    shutil.rmtree(place, ignore_errors=True)
    shutil.rmtree("/tmp/attack-inodes", ignore_errors=True)

got = {}
for line in said.splitlines():
    words = line.split(" ", 3)
    if words[0] == "attack":
        got[words[1]] = (words[2], words[3] if len(words) > 3 else "")
absent = 0
for a in attacks:
    name = a["attack"]
    verdict, detail = got.get(name, ("nothing", p.stderr[-200:]))
    works = a["broken"] in seen if "broken" in a else verdict == "succeeded"
    if not works and a["works"] == "root" and not root:
        skip(f"{name} works outside", "for root only")
    elif not works and a["works"] == "kernel":
        absent += 1
        skip(f"{name} works outside", f"not here: {a['needs']} ({detail})")
    else:
        check(f"{name} works outside", works, f"{verdict} {detail}")
if root:
    check("few are of things that this machine does not have", absent <= 40, absent)
done()
