"""Hellos that hide, split or contradict their name. usage: tls.py < {"allowed": host, "target": host, "only": [what is to be tried, or left out: all]}
Prints {what: "got ..." or "no ..."}; got: a server answered the hello. "fine: ..." must get an answer."""
import json
import socket
import struct
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from hello import client_hello, extension, record

given = json.load(sys.stdin)
allowed, target = given["allowed"].encode(), given["target"].encode()
results = {}
pool = ThreadPoolExecutor(16)


def attempt(what, pieces, wait=0):
    if what in given.get("only", [what]):
        pool.submit(attempt_now, what, pieces, wait, given["allowed"])


def attempt_now(what, pieces, wait, host):
    try:
        with socket.create_connection((host, 443), 5) as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            begun = time.monotonic()
            for piece in pieces:
                s.sendall(piece)
                if wait:
                    time.sleep(wait)
            s.settimeout(8)
            answer = s.recv(4096)
            took = f" after {time.monotonic() - begun:.2f} s"
            if answer[:1] == b"\x16":
                results[what] = "got a server's hello" + took
            elif answer[:1] == b"\x15":
                results[what] = f"no: alert {answer[6] if len(answer) > 6 else '?'}" + took
            else:
                results[what] = "no: " + repr(answer[:20]) + took
    except OSError as e:
        results[what] = f"no: {e}"


def split(data, n):
    return [data[i:i + n] for i in range(0, len(data), n)]


good, bad = client_hello(allowed, raw=True), client_hello(target, raw=True)
attempt("fine: whole", [record(good)])
attempt("fine: in segments of one byte", split(record(good), 1), 0.001)
attempt("fine: in records of one byte", [record(good, 1)])
attempt("fine: in records of 7 bytes, segments of 3", split(record(good, 7), 3), 0.001)
attempt("fine: name in capitals", [client_hello(allowed.upper())])
attempt("fine: with much padding", [client_hello(allowed, extension(21, bytes(9000)))])
attempt("another name", [record(bad)])
attempt("another name in segments of one byte", split(record(bad), 1), 0.001)
attempt("another name in records of one byte", [record(bad, 1)])
attempt("another name, split in its middle", split(record(bad, bad.index(target) + 5), 64), 0.001)
attempt("no name", [client_hello(None)])
attempt("empty name", [client_hello(b"")])
attempt("two names, the allowed first", [client_hello([allowed, target])])
attempt("two names, the allowed last", [client_hello([target, allowed])])
attempt("two extensions of names", [client_hello(allowed, extension(0, struct.pack("!HBH", len(target) + 3, 0, len(target)) + target))])
attempt("a name with NUL", [client_hello(allowed + b"\0." + target)])
attempt("a name with a trailing dot and another", [client_hello(target + b"." + allowed)])
attempt("an address as name", [client_hello(b"93.184.216.17")])
attempt("a name of 300 bytes", [client_hello(b"a" * 300)])
attempt("encrypted client hello", [client_hello(allowed, extension(0xfe0d, b"\0" + struct.pack("!HHB", 1, 1, 7) + struct.pack("!H", 32) +
                                                                  bytes(32) + struct.pack("!H", 64) + bytes(64)))])
attempt("encrypted server name (the draft before)", [client_hello(allowed, extension(0xffce, bytes(70)))])
attempt("SSL 2 hello", [b"\x80\x2e\1\0\2\0\x15\0\0\0\x10" + b"\1\0\x80" * 7 + bytes(16)])
attempt("length of the hello is huge", [b"\x16\3\1\x40\0\1\xff\xff\xff" + bytes(16380)])
attempt("record of no length", [b"\x16\3\1\0\0" * 2000])
attempt("record of the wrong type first", [b"\x17\3\3\0\5hello" + record(bad)])
attempt("alert first, then another name", [b"\x15\3\1\0\2\1\0" + record(bad)])
attempt("plain HTTP", [b"GET / HTTP/1.1\r\nHost: " + target + b"\r\n\r\n"])
attempt("plain HTTP with the allowed name", [b"GET / HTTP/1.1\r\nHost: " + allowed + b"\r\n\r\n"])
attempt("ssh", [b"SSH-2.0-x\r\n"])
attempt("bytes at random", [bytes(range(256)) * 8])
attempt("a hello that never ends", [record(bad)[:-1]])
pool.shutdown()
print(json.dumps(results))
