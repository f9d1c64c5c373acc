"""Every door that takes a name, and every kind of name that was ever taken for another one.

Runs in a box (and, so that it can fail, in one that may reach the target). usage: doors.py < {"allowed": host,
"target": host, "address": target's address, "https": true where 443 is looked into}
Prints {"door: name": "got ..." or "no ..."}: got is any answer that the allowed host would not have given by itself.
"""
import json
import socket
import ssl
import struct
import sys
from concurrent.futures import ThreadPoolExecutor

given = json.load(sys.stdin)
allowed, target, address = given["allowed"], given["target"], given["address"]
PROXY = ("127.0.0.1", 3128)
TIMEOUT = 4
results = {}


def names():
    """All mean, or could be made to mean, what is not allowed."""
    a, t = allowed.encode(), target.encode()
    found = {
        "plain": t, "upper case": t.upper(), "trailing dot": t + b".",
        "NUL before the allowed": t + b"\0." + a, "NUL after the allowed": a + b"\0." + t, "NUL at the end": t + b"\0",
        "newline": t + b"\n" + a, "return": a + b"\r\nX: " + t, "tab": t + b"\t" + a, "blank": t + b" " + a,
        "blank before": b" " + t, "DEL": t + b"\x7f", "escape": b"\x1b[0m" + t,
        "at the allowed": t + b"@" + a, "allowed at": a + b"@" + t, "hash": t + b"#." + a, "slash": t + b"/." + a,
        "question": t + b"?." + a, "backslash": t + b"\\." + a, "colon": t + b":80:" + a, "percent": b"%65" + t[1:],
        "percent dot": t.replace(b".", b"%2e"), "comma": a + b"," + t, "semicolon": a + b";" + t, "star": b"*." + t,
        "as label of the allowed": t + b"." + a, "before the allowed": b"x" + a, "after the allowed": a + b".example.net",
        "two dots": t.replace(b".", b".."), "dot before": b"." + t, "dots only": b"...", "empty": b"",
        "long label": b"a" * 64 + b"." + a, "long name": b"a." * 130 + a, "very long": b"a" * 4000,
        "wide letters": "ｅｖｉｌ.example.net".encode(), "ideographic dot": "evil。example。net".encode(),
        "Kelvin and others": "ﬁ.example.net".encode(), "punycode of ASCII": b"xn--evil-.example.net", "not UTF-8": b"\xff\xfe." + a,
        "high bit": bytes(c | 0x80 for c in t),
        "address": address.encode(), "address in brackets": b"[" + address.encode() + b"]",
        "mapped": b"::ffff:" + address.encode(), "mapped in brackets": b"[::ffff:" + address.encode() + b"]",
        "decimal": str(struct.unpack("!I", socket.inet_aton(address))[0]).encode(),
        "hex": b"0x" + socket.inet_aton(address).hex().encode(),
        "octal": b".".join(b"0%o" % n for n in socket.inet_aton(address)),
        "hex parts": b".".join(b"0x%x" % n for n in socket.inet_aton(address)),
        "short form": b"%d.%d" % (socket.inet_aton(address)[0], struct.unpack("!I", b"\0" + socket.inet_aton(address)[1:])[0]),
        "address and dot": address.encode() + b".",
    }
    for name, ip in (("metadata", "169.254.169.254"), ("loopback", "127.0.0.1")):
        packed = socket.inet_aton(ip)
        found.update({name: ip.encode(), name + ", decimal": str(struct.unpack("!I", packed)[0]).encode(),
                      name + ", hex": b"0x" + packed.hex().encode(), name + ", octal": b".".join(b"0%o" % n for n in packed),
                      name + ", mapped": b"[::ffff:%x:%x]" % struct.unpack("!HH", packed),
                      name + ", NAT64": b"[64:ff9b::%x:%x]" % struct.unpack("!HH", packed),
                      name + ", 6to4": b"[2002:%x:%x::1]" % struct.unpack("!HH", packed)})
    found.update({"localhost": b"localhost", "localhost.": b"localhost.", "short loopback": b"127.1", "zero": b"0", "zeros": b"0.0.0.0",
                  "v6 loopback": b"[::1]", "v6 any": b"[::]", "v6 zone": b"[fe80::1%lo]", "own": b"10.0.2.100", "synthetic": b"198.18.0.77"})
    return found


def judge(answer, where):
    """Did an answer come that shows more than the allowed host's own page?"""
    text = answer.decode("latin-1", "replace")
    if "HOST-CANARY" in text or "METADATA" in text:
        return "got " + text[-40:]
    status = text.split(" ", 2)[1:2]
    if text.startswith("HTTP/1.") and status and status[0].startswith("2") and "hello from" in text:
        return "no: the allowed host answered for itself" if f"hello from {allowed}:" in text else "got " + text[text.find("hello"):][:80]
    return "no: " + " ".join(text.split())[:60]


def read_all(s):
    data = b""
    while len(data) < 65536 and (part := s.recv(65536)):
        data += part
    return data


def get(s, host=None, target_line=b"/"):
    s.sendall(b"GET " + target_line + b" HTTP/1.1\r\nHost: " + (host if host is not None else target.encode()) + b"\r\nConnection: close\r\n\r\n")
    return read_all(s)


def encode(name):
    """As labels, whatever is in them."""
    return b"".join(bytes([min(len(x), 255)]) + x for x in name.split(b".")) + b"\0"


def query(name, kind=1):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(TIMEOUT)
    s.sendto(struct.pack("!HHHHHH", 7, 0x100, 1, 0, 0, 0) + encode(name) + struct.pack("!HH", kind, 1), ("8.8.8.8", 53))
    answer = s.recv(4096)
    if answer[3] & 15 or struct.unpack_from("!H", answer, 6)[0] == 0:
        raise OSError(f"rcode {answer[3] & 15}")
    return socket.inet_ntop(socket.AF_INET, answer[-4:])


def by_dns(name):
    with socket.create_connection((query(name), 80), TIMEOUT) as s:
        return get(s)


def by_connect(name, port=b"80"):
    with socket.create_connection(PROXY, TIMEOUT) as s:
        s.sendall(b"CONNECT " + name + b":" + port + b" HTTP/1.1\r\nHost: " + name + b"\r\n\r\n")
        head = s.recv(4096)
        if b" 200" not in head.split(b"\r\n")[0]:
            return b"HTTP/1.1 " + head
        return get(s)


def by_connect_host(name):
    """The line names the allowed, the Host header another."""
    with socket.create_connection(PROXY, TIMEOUT) as s:
        s.sendall(b"CONNECT " + allowed.encode() + b":80 HTTP/1.1\r\nHost: " + name + b"\r\n\r\n")
        if b" 200" not in s.recv(4096).split(b"\r\n")[0]:
            return b""
        return get(s, name)


def by_forward(name):
    with socket.create_connection(PROXY, TIMEOUT) as s:
        return get(s, name, b"http://" + name + b"/")


def by_forward_host(name):
    with socket.create_connection(PROXY, TIMEOUT) as s:
        return get(s, name, b"http://" + allowed.encode() + b"/")


def by_socks5(name, kind=3):
    with socket.create_connection(PROXY, TIMEOUT) as s:
        s.sendall(b"\5\1\0")
        if s.recv(2) != b"\5\0":
            return b""
        s.sendall(b"\5\1\0\3" + bytes([min(len(name), 255)]) + name[:255] + struct.pack("!H", 80))
        answer = s.recv(300)
        if answer[1:2] != b"\0":
            return b"HTTP/1.1 refused by SOCKS: " + answer.hex().encode()
        return get(s)


def by_socks4a(name):
    with socket.create_connection(PROXY, TIMEOUT) as s:
        s.sendall(b"\4\1" + struct.pack("!H", 80) + b"\0\0\0\1" + b"x\0" + name + b"\0")
        if s.recv(8)[1:2] != b"\x5a":
            return b""
        return get(s)


def by_host(name):
    with socket.create_connection((allowed, 80), TIMEOUT) as s:
        return get(s, name)


def by_absolute(name):
    with socket.create_connection((allowed, 80), TIMEOUT) as s:
        return get(s, allowed.encode(), b"http://" + name + b"/")


def by_second_request(name):
    with socket.create_connection((allowed, 80), TIMEOUT) as s:
        s.sendall(b"GET / HTTP/1.1\r\nHost: " + allowed.encode() + b"\r\n\r\n")
        s.recv(65536)
        return get(s, name)


def by_two_hosts(name):
    with socket.create_connection((allowed, 80), TIMEOUT) as s:
        s.sendall(b"GET / HTTP/1.1\r\nHost: " + name + b"\r\nHost: " + allowed.encode() + b"\r\nConnection: close\r\n\r\n")
        return read_all(s)


def by_sni(name):
    """To the allowed host's address: the hello names another. What the server then answers to is its own."""
    from hello import client_hello
    with socket.create_connection((allowed, 443), TIMEOUT) as s:
        s.sendall(client_hello(name))
        answer = s.recv(4096)
        # A server's hello (record 22) means that the hello went through.
        return b"HTTP/1.1 200 OK\r\n\r\nhello from a TLS server" if answer[:1] == b"\x16" else b"alert " + answer.hex().encode()


doors = {"lookup": by_dns, "CONNECT": by_connect, "Host of CONNECT": by_connect_host, "proxied URL": by_forward,
         "Host of a proxied URL": by_forward_host, "SOCKS5": by_socks5, "SOCKS4a": by_socks4a, "Host": by_host,
         "absolute URL": by_absolute, "Host of a second request": by_second_request, "first of two Hosts": by_two_hosts, "SNI": by_sni}
wanted = given.get("doors", list(doors))


def attempt(door, what, name):
    try:
        results[f"{door}: {what}"] = judge(doors[door](name), door)
    except Exception as e:
        results[f"{door}: {what}"] = f"no: {type(e).__name__} {e}"[:90]


with ThreadPoolExecutor(8) as pool:
    for door in wanted:
        for what, name in names().items():
            if what == "plain" or not given.get("plain"):
                pool.submit(attempt, door, what, name)
# The same name written otherwise is the same name.
target = allowed
for door in wanted:
    for what, name in (("upper case", allowed.upper()), ("trailing dot", allowed + ".")):
        if door == "lookup" and what == "trailing dot" or door == "first of two Hosts":
            continue
        if what == "trailing dot" and door in ("Host of a proxied URL", "absolute URL"):
            continue  # two different names in one request
        try:
            got = judge(doors[door](name.encode()), door)
            results[f"same: {door}: {what}"] = "no: the allowed host answered" if f"hello from {name}" in got else got
        except Exception as e:
            results[f"same: {door}: {what}"] = f"{type(e).__name__} {e}"
print(json.dumps(results))
