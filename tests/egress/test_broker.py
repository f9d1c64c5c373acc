"""The broker with a network namespace around it: names, connections, refusals, proxies, floods.

    test_broker.py NETBOX BROKER [USER]
"""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import netbox  # noqa: E402
import standin  # noqa: E402
from tap import case, check, done, same, skip  # noqa: E402

NETBOX, BROKER = sys.argv[1:3]
user = sys.argv[3] if len(sys.argv) > 3 else None

try:
    world = standin.enter(user)
except standin.NotHere as why:
    skip("a world to test egress in", why, "userns")
    done()
run = netbox.maker(world, NETBOX, BROKER)

WWW = {"host": "www.example.com", "port": 443}
API = {"host": "api.example.com", "port": 443}
ANY = {"host": "*.sub.example.com", "port": 443}
ECHO = {"host": "echo.example.com", "port": 7, "protocol": "tcp"}
SMTP = {"host": "smtp.example.com", "port": 2525, "protocol": "tcp"}


def curl(*args):
    return ["curl", "-sS", "-m", "10", *args]


def hosts(result, **want):
    return sorted({e["host"] for e in result.told(**want)})


# ---------------------------------------------------------------- names

DIG = "for q in {}; do echo \"== $q\"; dig +tries=1 +time=3 $(echo $q | tr , ' '); done"


def dig(network, *queries, **more):
    """What dig prints, by query ("www.example.com,AAAA,@8.8.8.8")."""
    r = run(network, ["sh", "-c", DIG.format(" ".join(queries))], **more)
    parts = r.out.split("== ")[1:]
    return r, {p.split("\n", 1)[0]: p.split("\n", 1)[1] for p in parts}


@case
def names():
    world.clear()
    r, said = dig({"allow": [WWW, ANY]}, "www.example.com", "www.example.com,AAAA", "www.example.com,@8.8.8.8",
                  "www.example.com,+tcp", "WWW.Example.COM.", "www.example.com,HTTPS", "www.example.com,TXT",
                  "www.example.com,MX", "www.example.com,ANY", "other.example.com", "-x,198.18.0.1", "-x,198.18.0.77",
                  "-x,fd5b:ad::1", "secret-data.sub.example.com", "sub.example.com", "localhost", "example.com,NS",
                  "www.example.com,@2001:db8::1", "www.example.com,+noedns", ".,NS", "www.example.com,CH,TXT",
                  "www.example.com,+opcode=STATUS", "a_b.sub.example.com", "w%ww.example.com")
    check("an allowed name has an address that stands for it", "198.18.0.1" in said["www.example.com"], r)
    check("of both families", "fd5b:ad::1" in said["www.example.com,AAAA"], said["www.example.com,AAAA"])
    for how in ("@8.8.8.8", "+tcp", "@2001:db8::1", "+noedns", "ANY"):
        check(f"whatever the server and the form: {how}", "198.18.0.1" in said["www.example.com," + how],
              said["www.example.com," + how])
    check("upper case and the final dot are the same name", "198.18.0.1" in said["WWW.Example.COM."])
    for kind in ("HTTPS", "TXT", "MX"):
        text = said["www.example.com," + kind]
        check(f"{kind}: no data, no error", "NOERROR" in text and "ANSWER: 0" in text and "SOA" in text, text)
    check("a name off the policy does not exist", "NXDOMAIN" in said["other.example.com"])
    check("a wildcard is not its suffix", "NXDOMAIN" in said["sub.example.com"])
    check("a wildcard covers what is below it", "198.18.0." in said["secret-data.sub.example.com"])
    check("an underscore is a letter", "198.18.0." in said["a_b.sub.example.com"])
    check("an address has its name, of both families",
          "www.example.com." in said["-x,198.18.0.1"] and "www.example.com." in said["-x,fd5b:ad::1"], said["-x,fd5b:ad::1"])
    check("and no other has one", "NXDOMAIN" in said["-x,198.18.0.77"])
    check("localhost is the box", "127.0.0.1" in said["localhost"])
    check("the root has no data", "NOERROR" in said[".,NS"], said[".,NS"])
    check("another class is refused", "REFUSED" in said["www.example.com,CH,TXT"], said["www.example.com,CH,TXT"])
    check("another opcode is not implemented", "NOTIMP" in said["www.example.com,+opcode=STATUS"], said["www.example.com,+opcode=STATUS"])
    check("a byte that is not of a name", "NXDOMAIN" in said["w%ww.example.com"], said["w%ww.example.com"])
    same("no lookup leaves the machine", world.seen("lookup"), [])
    same("each refused name is told", hosts(r, outcome="blocked", what="lookup"),
         ["example.com", "other.example.com", "sub.example.com", "w?ww.example.com"])
    same("and counted", r.count(outcome="blocked", what="lookup", host="other.example.com"), 1)


# ---------------------------------------------------------------- TLS by its name

@case
def tls():
    world.clear()
    r = run({"allow": [WWW, API]}, ["sh", "-c", """
        curl -sS -m 10 -4 https://www.example.com/ -o /dev/null -w '%{http_code}\\n'
        curl -sS -m 10 -6 https://www.example.com/ -o /dev/null -w '%{http_code}\\n'
        curl -sS -m 10 https://other.example.com/ 2>&1; echo $?
        curl -sSk -m 10 --connect-to other.example.com:443:www.example.com:443 https://other.example.com/ 2>&1; echo $?
        curl -sSk -m 10 --connect-to api.example.com:443:www.example.com:443 https://api.example.com/ 2>&1; echo $?
        curl -sS -m 10 https://www.example.com:8443/ 2>&1; echo $?
    """])
    lines = r.out.splitlines()
    same("https over IPv4 and IPv6", lines[:2], ["200", "200"])
    check("a name off the policy: cannot be resolved, at once", "Could not resolve" in lines[2] and lines[3] == "6", r)
    check("another name in the hello than the connection's", lines[5] == "35" and "SNI is not the name" in
          r.one(outcome="blocked", sni="other.example.com").get("detail", ""), r)
    check("also where that name is allowed by itself", lines[7] == "35" and
          r.one(outcome="blocked", sni="api.example.com").get("host") == "www.example.com", r)
    check("another port: an alert", lines[9] == "35" and "denied" in lines[8] and
          r.one(outcome="blocked", port=8443).get("host") == "www.example.com", r)
    e = r.told(outcome="allowed", what="connection", host="www.example.com")
    check("a connection is told with all there is", len(e) == 2 and {x["family"] for x in e} == {4, 6} and all(
        x["in"] > 500 and x["out"] > 300 and x["us"] > 0 and x["source_port"] and x["address"] and
        x["sni"] == "www.example.com" and x["rule"] == 0 for x in e), r)
    same("nothing else connected", sorted({(c["address"], c["port"]) for c in world.seen("connect")} -
                                          {("93.184.216.10", 443), ("2606:2800:220:1::a", 443)}), [])


@case
def hellos():
    world.clear()
    r = run({"allow": [WWW, {"host": "raw.example.com", "port": 443, "protocol": "tcp"}]}, """
        def answer(*parts, pause=0, after=None):
            s = dial("www.example.com", 443, timeout=30)
            for p in parts:
                s.sendall(p)
                time.sleep(pause)
            if after: after(s)
            data = all_of(s)
            return [data[:1].hex(), data[-7:].hex() if len(data) < 40 else len(data) > 7]
        good = hello(b"www.example.com")
        # The real server answers a hello like this with an alert of its own, or a hello: that it does is what counts.
        say(answer(record(good)))
        say(answer(*[record(good[i:i+1]) for i in range(len(good))]))
        whole = record(good)
        say(answer(*[whole[i:i+1] for i in range(len(whole))], pause=0.001))
        say(answer(record(hello(None))))
        say(answer(record(hello(b"www.example.com\\0.evil.example.net"))))
        say(answer(record(hello(b"WWW.EXAMPLE.COM"))))
        say(answer(record(hello(b"www.example.com", extra=b"\\xfe\\x0d\\x00\\x00"))))
        say(answer(record(good) + record(good)[:9]))
        say(answer(record(hello(b"www.example.com", extra=hello(b"evil.example.net")[-25:]))))
        say(answer(b"GET / HTTP/1.1\\r\\nHost: www.example.com\\r\\n\\r\\n"))
        say(answer(b"\\x16\\x03\\x01\\x40\\x01" + bytes(20)))
        say(answer(b"\\x00\\x01\\x02"))
        start = time.time()
        say(answer())
        say(3 < time.time() - start < 25)
        start = time.time()
        say(answer(record(good)[:20], after=lambda s: [(s.sendall(whole[20+i:21+i]), time.sleep(0.4)) for i in range(20) if time.time() - start < 7] if 0 else None))
        say(3 < time.time() - start < 25)
    """, timeout=90)
    if r.code:
        check("hellos", False, r)
        return
    a = r.said
    alert = ["15", "15030300020231"]
    check("a plain hello goes through", a[0][0] in ("15", "16") and a[0] != alert, a[0])
    same("in records of one byte each", a[1][0], a[0][0])
    same("in segments of one byte each", a[2][0], a[0][0])
    same("no SNI: access_denied", a[3], alert)
    same("NUL in the SNI", a[4], alert)
    same("upper case is the same name", a[5][0], a[0][0])
    same("an encrypted hello", a[6], alert)
    check("a hello with more behind it goes through", a[7] != alert, a[7])
    same("two names", a[8], alert)
    check("HTTP in clear on a TLS rule gets a 403", a[9][0] == "48", a[9])
    same("a record that is too long", a[10], alert)
    check("bytes that are nothing known: reset", a[11][0] == "3c", a[11])
    check("a client that waits for the server: reset after a while", a[12][0] == "3c" and a[13], a[12:14])
    check("half a hello, and no more: an alert after a while", a[14] == alert and a[15], a[14:16])
    details = {e["detail"] for e in r.told(outcome="blocked")}
    for want in ("no SNI", "SNI is not a host name", "ECH", "makes sense", "HTTP in clear", "neither TLS nor HTTP",
                 "the server speaks first", "did not finish"):
        check(f"the event says why: {want}", any(want in d for d in details), details)


# ---------------------------------------------------------------- raw TCP

@case
def tcp():
    r = run({"allow": [ECHO, SMTP, {"host": "closed.example.com", "port": 444, "protocol": "tcp"},
                       {"host": "mute.example.com", "port": 7, "protocol": "tcp"},
                       {"host": "nothere.example.com", "port": 7, "protocol": "tcp"},
                       {"address": "93.184.216.0/25", "port": 7, "protocol": "tcp"},
                       {"host": "echo.example.com", "port": 9, "protocol": "tcp"}]}, """
        import hashlib, threading
        s = dial("smtp.example.com", 2525)
        say(s.recv(100).decode())
        s.sendall(b"helo\\r\\nquit\\r\\n"); say(all_of(s).decode())
        # Bulk, both ways, and the end of one side first.
        s = dial("echo.example.com", 7, timeout=30)
        block = os.urandom(1 << 20)
        sent = hashlib.sha256(); got = hashlib.sha256(); n = 0
        def send():
            for i in range(64):
                s.sendall(block); sent.update(block)
            s.shutdown(socket.SHUT_WR)
        t = threading.Thread(target=send); t.start()
        while True:
            d = s.recv(1 << 20)
            if not d: break
            got.update(d); n += len(d)
        t.join()
        say([n, sent.digest() == got.digest()])
        # One that reads late: the sender waits, nothing is lost.
        s = dial("echo.example.com", 7, timeout=30)
        s.setblocking(False); n = 0; idle = 0
        while idle < 20:
            try: n += s.send(block); idle = 0
            except BlockingIOError: idle += 1; time.sleep(0.02)
        s.settimeout(20); s.shutdown(socket.SHUT_WR)
        say([n < 256 << 20, len(all_of(s)) == n])
        s = dial("closed.example.com", 444); say(all_of(s).decode())
        s = dial("nothere.example.com", 7); say(all_of(s).decode())
        s = socket.create_connection(("93.184.216.27", 7), 5); s.sendall(b"x"); say(s.recv(5).decode())
        s = socket.create_connection(("::ffff:93.184.216.27", 7), 5); s.sendall(b"y"); say(s.recv(5).decode())
        for address in (("93.184.216.200", 7), ("93.184.216.27", 8), ("2606:2800:220:1::1b", 7), ("198.18.200.1", 7), ("10.0.2.100", 61053), ("127.0.0.1", 61053), ("169.254.169.254", 80)):
            start = time.time()
            try: got = all_of(dial(*address, timeout=5)).decode()
            except OSError as e: got = type(e).__name__
            say([got, time.time() - start < 3])
    """, timeout=90)
    if r.code:
        check("tcp", False, r)
        return
    a = r.said
    check("a server that speaks first", a[0].startswith("220") and "250 quit" in a[1], r)
    same("64 MiB through, whole, and the end of one side first", a[2], [64 << 20, True])
    same("a sender waits for one that does not read; nothing is lost", a[3], [True, True])
    same("a port that nobody has: reset", a[4], "<reset>")
    check("and told as unreachable", "ECONNREFUSED" in str(r.one(outcome="unreachable", port=444)), r)
    same("a name that does not exist outside: reset", a[5], "<reset>")
    check("and told as such", "does not exist" in str(r.one(outcome="unreachable", host="nothere.example.com")), r)
    same("a literal address under a rule", a[6:8], ["x", "y"])
    for i, what in enumerate(("an address beyond the range", "another port", "the same host's IPv6 address",
                              "an address that stands for no name", "the broker's port at the box's address",
                              "the broker's port on loopback", "metadata")):
        same(f"refused at once: {what}", a[8 + i], ["ConnectionRefusedError" if "box's address" in what else "<reset>", True])
    check("each is told that comes to the broker", len(r.told(outcome="blocked", what="connection")) == 6, r)
    check("an address without a name is told as one", r.one(outcome="blocked", address="169.254.169.254").get("port") == 80, r)
    e = r.one(outcome="allowed", host="echo.example.com", **{"out": 64 << 20})
    same("bytes are counted, both ways", (e.get("out"), e.get("in")), (64 << 20, 64 << 20))


@case
def resolved():
    """Where a name leads is looked at each time."""
    bad = ["to-loopback", "to-metadata", "to-private", "to-cgnat", "to-host", "to-host6", "to-hosts-lan", "to-mapped", "to-nat64",
           "to-6to4", "to-ula", "to-zero", "to-multicast", "to-synthetic", "loop-from-hosts"]
    good = ["v4only", "v6only", "brokenv6", "cname", "many", "truncated", "slow", "from-hosts", "mixed"]
    rules = [{"host": f"{n}.example.com", "port": 8081 if n in bad else 7, "protocol": "tcp"} for n in bad + good + ["rebind"]]
    rules[-1]["port"] = 7
    world.clear()
    r = run({"allow": rules + [{"host": "private.example.com", "address": "10.20.30.0/24", "port": 7, "protocol": "tcp"}]},
            f"""
        for name in {bad!r}:
            s = dial(name + ".example.com", 8081)
            try: s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n"); say(all_of(s).decode())
            except ConnectionResetError: say("<reset>")
        for name in {good!r}:
            start = time.time(); s = dial(name + ".example.com", 7); s.sendall(b"z"); say([s.recv(5).decode("latin-1"), time.time() - start < 3])
        for _ in range(2):
            s = dial("rebind.example.com", 7); s.settimeout(3)
            try: s.sendall(b"z"); say(all_of(s).decode() if _ else s.recv(1).decode())
            except ConnectionResetError: say("<reset>")
    """, timeout=120)
    if r.code:
        check("resolved", False, r)
        return
    a = r.said
    for i, name in enumerate(bad):
        event = r.one(outcome="blocked", host=name + ".example.com")
        check(f"{name}: never dialled", a[i] == "<reset>" and "resolves to" in event.get("detail", ""), [a[i], event])
    same("the host's own services are not reached", world.seen("canary"), [])
    for i, name in enumerate(good):
        fast = name != "slow"
        check(f"{name}: connected", a[len(bad) + i][0] == "z" and (a[len(bad) + i][1] or not fast), a[len(bad) + i])
    same("a name that is rebound between two connections", a[-2:], ["z", "<reset>"])
    world.answer("private.example.com", a=["10.20.30.41"], ttl=0)
    r = run({"allow": [{"host": "private.example.com", "address": "10.20.30.0/24", "port": 7, "protocol": "tcp"}]}, """
        s = dial("private.example.com", 7); s.sendall(b"p"); say(s.recv(1).decode())
    """)
    check("a private address that the rule itself names", r.out == '"p"\n', r)


@case
def ranges():
    """What a range names, and what it does not."""
    def reach(rule, *targets):
        world.clear()
        r = run({"allow": [{"address": rule, "port": p, "protocol": "tcp"} for p in (7, 80, 8081)] + [
            {"host": "to-loopback.example.com", "port": 8081, "protocol": "tcp"}, {"host": "to-metadata.example.com", "port": 80, "protocol": "tcp"}]},
                f"""
            for target in {targets!r}:
                s = dial(*target)
                s.settimeout(20)
                try: s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n"); say(len(s.recv(100)) > 0)
                except OSError as e: say(type(e).__name__)
        """)
        return r.said if r.code == 0 else r
    no = "ConnectionResetError"
    same("any IPv4 address: the internet, and not metadata, nor the host, nor by a name that leads there",
         reach("0.0.0.0/0", ("93.184.216.27", 7), ("169.254.169.254", 80), ("192.168.77.2", 8081), ("81.2.69.142", 8081),
               ("10.20.30.40", 80), ("to-loopback.example.com", 8081), ("to-metadata.example.com", 80)), [True] + [no] * 6)
    same("and the host saw nothing", world.seen("canary"), [])
    same("any IPv6 address likewise", reach("::/0", ("2606:2800:220:1::1b", 7), ("fd00:ec2::254", 80), ("2a01:4f8:1::2", 8081),
                                            ("64:ff9b::a9fe:a9fe", 80)), [True] + [no] * 3)
    same("the network that the host is in: the others there, and not the host",
         reach("192.168.77.0/24", ("192.168.77.1", 7), ("192.168.77.2", 8081)), [True, no])
    same("a private range", reach("10.20.30.0/24", ("10.20.30.40", 80)), [True])
    same("the host itself, by name", reach("192.168.77.2", ("192.168.77.2", 8081)), [True])
    same("metadata, by name", reach("169.254.169.254", ("169.254.169.254", 80), ("to-metadata.example.com", 80)), [True, True])


# ---------------------------------------------------------------- refusals

@case
def refusals():
    r = run({"allow": [WWW, {"host": "git.example.com", "port": 443}],
             "deny": [{"host": "evil.example.net", "reason": "use www.example.com instead"}]}, ["sh", "-c", """
        curl -sS -m 10 -i http://www.example.com/a/path?query 2>&1; echo "== $?"
        curl -sS -m 10 -H 'Accept: application/json' http://evil.example.net/x 2>&1; echo "== $?"
        curl -sS -m 10 -I http://www.example.com/ 2>&1; echo "== $?"
        curl -sS -m 10 https://evil.example.net/ 2>&1; echo "== $?"
        timeout 10 ssh -o BatchMode=yes -o StrictHostKeyChecking=no git@git.example.com true 2>&1; echo "== $?"
        timeout 10 ssh -p 22 -o BatchMode=yes -o StrictHostKeyChecking=no git@evil.example.net true 2>&1; echo "== $?"
        curl -sS -m 10 -d @/usr/bin/python3 http://www.example.com/ 2>&1; echo "== $?"
    """])
    parts = r.out.split("== ")
    check("HTTP: a 403 that says what, why, that it is final, and the remedy",
          "403 Forbidden" in parts[0] and "GET http://www.example.com:80/a/path" in parts[0] and "policy and final" in parts[0]
          and "--allow 'www.example.com:80'" in parts[0] and parts[1].startswith("0"), parts[0])
    j = json.loads(parts[1].split("\n", 1)[1])
    check("as JSON for who asks for it, with the rule's reason",
          j["error"] == "blocked_by_policy" and j["final"] is True and j["reason"] == "use www.example.com instead"
          and j["host"] == "evil.example.net" and "remedy" in j, j)
    check("HEAD without a body", "403" in parts[2] and parts[3].startswith("0"), parts[2])
    check("TLS: an alert that curl has words for", "access denied" in parts[3].lower(), parts[3])
    check("SSH: a disconnect message that ssh shows", "blocked by Pale" in parts[4], parts[4])
    check("with the rule's reason", "use www.example.com instead" in parts[5], parts[5])
    check("a body that is not read does not hide the answer", "Blocked by Pale" in parts[6], parts[6][:300])
    e = r.one(outcome="blocked", method="GET", host="www.example.com")
    same("told with method and path", (e.get("path"), e.get("port")), ("/a/path", 80))
    check("a denied name is told with its rule", r.told(outcome="blocked", host="evil.example.net", rule=2), r)


# ---------------------------------------------------------------- proxies

@case
def proxies():
    world.clear()
    p = "http://127.0.0.1:3128"
    r = run({"allow": [WWW, ECHO, {"host": "nothere.example.com", "port": 443}, {"address": "93.184.216.27", "port": 7, "protocol": "tcp"}]},
            ["sh", "-c", f"""
        c() {{ curl -sS -m 10 -o /dev/null -w '%{{http_code}}/%{{http_connect}} ' "$@" 2>&1; echo "== $?"; }}
        c -x {p} https://www.example.com/
        c --socks5-hostname 127.0.0.1:3128 https://www.example.com/
        c --socks5 127.0.0.1:3128 https://www.example.com/
        c --socks4a 127.0.0.1:3128 https://www.example.com/
        c --socks4 127.0.0.1:3128 https://www.example.com/
        c -x {p} https://other.example.com/
        c --socks5-hostname 127.0.0.1:3128 https://other.example.com/
        c --socks4a 127.0.0.1:3128 https://other.example.com/
        c -x {p} https://127.0.0.1:8081/
        c -x {p} https://localhost:8081/
        c -x {p} https://[::1]:8081/
        c -x {p} https://169.254.169.254:443/
        c -x {p} https://nothere.example.com/
        c --socks5-hostname 127.0.0.1:3128 https://nothere.example.com/
        c {p}/
        c -k -x {p} --connect-to api.example.com:443:www.example.com:443 https://api.example.com/
        curl -sS -m 10 -D - -x {p} https://other.example.com/ 2>/dev/null
    """])
    parts = r.out.split("== ")
    lines = [p.split("\n", 1)[-1].strip() for p in parts[:-1]]
    codes = [p.split("\n", 1)[0].strip() for p in parts[1:]]
    for i, how in enumerate(("CONNECT", "SOCKS5 with names", "SOCKS5 with addresses", "SOCKS4a", "SOCKS4")):
        check(f"{how}: through", lines[i].startswith("200") and codes[i] == "0", [lines[i], codes[i], r])
    check("CONNECT to a name off the policy: 403", "/403" in lines[5] and codes[5] == "56", lines[5])
    check("SOCKS5: not allowed by the rules", codes[6] == "97", [lines[6], codes[6]])
    check("SOCKS4a: refused", codes[7] == "97", [lines[7], codes[7]])
    for i, what in enumerate(("127.0.0.1", "localhost", "[::1]", "metadata")):
        check(f"through the proxy to {what}: 403", "/403" in lines[8 + i], lines[8 + i])
    check("a name that does not exist outside: 502", "/502" in lines[12], lines[12])
    check("and SOCKS says so", codes[13] == "97", codes[13])
    check("a request to the proxy itself: 400", lines[14].startswith("400"), lines[14])
    check("another name in the hello than in CONNECT", codes[15] == "35", [lines[15], codes[15]])
    tail = parts[-1]
    check("a 403 of CONNECT explains itself", "policy and final" in tail or "403" in tail, tail)
    same("the host's own services are not reached", world.seen("canary"), [])
    r = run({"allow": [WWW, ECHO]}, """
        def ask(*parts, want=64):
            s = socket.create_connection(("127.0.0.1", 3128), 5)
            out = b""
            for p in parts:
                s.sendall(p)
                if p is not parts[-1]: out += s.recv(64)
            return (out + all_of(s))[:want].hex()
        def five(name): return b"\\5\\1\\0\\3" + bytes([len(name)]) + name + b"\\0\\7"
        hi = b"\\5\\1\\0"
        say(ask(hi, five(b"echo.example.com\\0.evil.example.net")))
        say(ask(hi, five(b"")))
        say(ask(hi, five(b"echo.example.com\\r\\n")))
        say(ask(b"\\5\\1\\2", b"\\1\\1u\\1p", five(b"nope.example.com")))
        say(ask(b"\\5\\1\\1"))
        say(ask(hi, b"\\5\\2\\0\\3" + b"\\x10echo.example.com\\0\\7"))
        say(ask(b"CONNECT echo.example.com\\0.evil.example.net:7 HTTP/1.1\\r\\n\\r\\n", want=12))
        say(ask(b"CONNECT echo.example.com HTTP/1.1\\r\\n\\r\\n", want=12))
        say(ask(b"CONNECT echo.example.com:7:7 HTTP/1.1\\r\\n\\r\\n", want=12))
        say(ask(b"CONNECT 0x7f000001:7 HTTP/1.1\\r\\n\\r\\n", want=12))
        say(ask(b"CONNECT 2130706433:7 HTTP/1.1\\r\\n\\r\\n", want=12))
        say(ask(b"\\4\\1\\0\\7\\0\\0\\0\\1u\\0echo.example.com\\0"[:-1] + b"\\x01\\0"))
        # In one piece with what follows.
        s = socket.create_connection(("127.0.0.1", 3128), 5)
        s.sendall(b"CONNECT echo.example.com:7 HTTP/1.1\\r\\n\\r\\nearly"); s.settimeout(3)
        say(all_of(s).decode())
        s = socket.create_connection(("127.0.0.1", 3128), 5)
        s.sendall(hi + five(b"echo.example.com") + b"early"); s.settimeout(3)
        say(all_of(s).hex())
    """)
    a = r.said
    denied = "05020001" + "00" * 6
    same("SOCKS: NUL in a name", a[0], "0500" + denied)
    same("SOCKS: no name", a[1], "0500" + denied)
    same("SOCKS: newline in a name", a[2], "0500" + denied)
    same("SOCKS: with a login", a[3], "05020100" + denied)
    same("SOCKS: no way to log in that we have", a[4][:4], "05ff")
    same("SOCKS: another command", a[5][:8], "05000507")
    same("CONNECT with what is no name", [bytes.fromhex(x).decode() for x in a[6:11]], ["HTTP/1.1 403"] * 5)
    same("SOCKS4a: a control in a name", a[11][:4], "005b")
    check("what comes in one piece with CONNECT is not lost", a[12].endswith("\r\n\r\nearly<timeout>"), a[12])
    check("nor with SOCKS", bytes.fromhex(a[13]).endswith(b"early<timeout>"), a[13])


# ---------------------------------------------------------------- UDP

@case
def udp():
    world.clear()
    r = run({"allow": [{"host": "udp.example.com", "port": 123, "protocol": "udp"}, {"address": "8.8.8.8", "port": 123, "protocol": "udp"},
                       WWW]}, """
        def ask(address, data=b"ping", timeout=10):
            s = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, socket.SOCK_DGRAM)
            s.settimeout(timeout)
            try:
                s.sendto(data, address); return s.recvfrom(65536)[0][:20].decode()
            except OSError as e: return type(e).__name__
        for family in (socket.AF_INET, socket.AF_INET6):
            at = socket.getaddrinfo("udp.example.com", 123, family)[0][4]
            say(ask(at)); say(ask(at, b"x" * 5000))
        say(ask(("8.8.8.8", 123)))
        say(ask(("1.1.1.1", 123), timeout=0.5))
        www = socket.gethostbyname("www.example.com")
        say(ask((www, 443), timeout=0.5))
    """)
    a = r.said
    same("datagrams to a name, over both families, small and large", a[:4], ["ping", "x" * 20] * 2)
    same("to a single address", a[4], "ping")
    check("to nowhere else", all(x in ("TimeoutError", "timeout", "ConnectionRefusedError") for x in a[5:7]), a[5:7])
    same("nothing else arrived", {(d["port"]) for d in world.seen("datagram")}, {123})
    check("each source port is told as a flow", len(r.told(outcome="allowed", protocol=8)) == 5, r)


# ---------------------------------------------------------------- caps and changes

@case
def caps():
    r = run({"allow": [{**ECHO, "bytes": "1MiB"}, {**SMTP, "rate": "64KiB"}, {"host": "other.example.com", "port": 7, "protocol": "tcp", "rate": "512KiB"}],
             "connections": 3}, """
        s = dial("echo.example.com", 7); n = 0
        try:
            while n < 8 << 20:
                s.sendall(bytes(1 << 16)); n += 1 << 16
                s.recv(1 << 16)
        except OSError: pass
        say(n <= 2 << 20)
        s = dial("other.example.com", 7); start = time.time()
        import threading
        threading.Thread(target=lambda: (s.sendall(bytes(512 << 10)), s.shutdown(1))).start()
        got = all_of(s); say([len(got), 1.2 < time.time() - start < 30])
        held = [dial("other.example.com", 7) for _ in range(3)]
        for h in held: h.sendall(b"1"); h.recv(1)
        say(all_of(dial("other.example.com", 7)).decode())
        held.pop().close()
        for _ in range(100):  # until the broker has seen it
            time.sleep(0.05)
            s = dial("other.example.com", 7)
            try: s.sendall(b"2"); got = s.recv(1).decode()
            except ConnectionError: continue
            say(got); break
    """)
    if r.code:
        check("caps", False, r)
        return
    a = r.said
    check("a cap on bytes ends the connection", a[0] and "cap on bytes" in str(r.one(outcome="blocked", host="echo.example.com")), r)
    same("a rate slows it down", a[1], [512 << 10, True])
    check("connections over the limit are refused, and told", a[2] == "<reset>" and
          r.told(outcome="blocked", detail="too many connections are open at a time"), r)
    same("one that ended makes room", a[3], "2")


@case
def caps_of_many():
    """Many short connections are no way around a cap."""
    r = run({"allow": [{**ECHO, "bytes": "1MiB"}]}, """
        for i in range(60):
            s = dial("echo.example.com", 7)
            try:
                s.sendall(bytes(60000)); s.shutdown(socket.SHUT_WR); all_of(s)
            except OSError: pass
    """)
    moved = sum(e["out"] + e["in"] for e in r.told(what="connection"))
    check("a cap on bytes is one on all connections together", r.code == 0 and (1 << 20) <= moved < (3 << 19), (moved, r))
    check("and those that are refused for it are told", "cap on bytes" in str(r.told(outcome="blocked")), r)
    r = run({"allow": [{**ECHO, "rate": "128KiB"}]}, """
        start = time.time()
        while time.time() - start < 3:
            s = dial("echo.example.com", 7)
            try: s.sendall(bytes(60000)); time.sleep(0.02)
            except OSError: pass
            s.close()
        say(time.time() - start)
    """)
    moved = sum(e["out"] + e["in"] for e in r.told(what="connection"))
    check("and a rate on their rate", r.code == 0 and 0 < moved < (r.said[0] + 2) * (128 << 10), (moved, r))


@case
def changes():
    box = netbox.Box(world, NETBOX, BROKER, {"allow": [ECHO, {**SMTP, "port": 7, "host": "other.example.com"}]}, """
        a = dial("echo.example.com", 7); b = dial("other.example.com", 7)
        for s in (a, b): s.sendall(b"1"); s.recv(1)
        print("ready", flush=True)
        say(all_of(a).decode())
        b.sendall(b"2"); say(b.recv(1).decode())
        c = dial("v4only.example.com", 7); c.sendall(b"3"); say(c.recv(1).decode())
        try: dial("echo.example.com", 7); say("connected")
        except OSError as e: say(type(e).__name__)
    """)
    ready = box.process.stdout.readline()
    box.change({"allow": [{**SMTP, "port": 7, "host": "other.example.com"}, {**ECHO, "host": "v4only.example.com"}]})
    r = box.end()
    lines = (ready + r.out).splitlines()
    same("new rules: what they don't allow ends, what they do goes on, what is new is there, what is gone is gone",
         lines, ["ready", '"<reset>"', '"2"', '"3"', '"gaierror"'])
    check("told as ended by the change", "rules were changed" in str(r.one(outcome="blocked", host="echo.example.com", what="connection")), r)


@case
def address_denied_meanwhile():
    box = netbox.Box(world, NETBOX, BROKER, {"allow": [ECHO]}, """
        a = dial("echo.example.com", 7); a.sendall(b"1"); a.recv(1)
        print("ready", flush=True)
        say(all_of(a).decode())
    """)
    ready = box.process.stdout.readline()
    box.change({"allow": [ECHO], "deny": [{"address": "93.184.216.27"}, {"address": "2606:2800:220:1::1b"}]})
    r = box.end()
    same("an address that is denied ends what goes there by a name", (ready + r.out).splitlines(), ["ready", '"<reset>"'])


@case
def addresses_by_proxy():
    r = run({"allow": [{"address": "93.184.216.10", "port": 80, "protocol": "http"},
                       {"address": "0.0.0.0/0", "port": 8081, "protocol": "http"}]}, ["sh", "-c", """
        for url in 93.184.216.10/ 93.184.216.11/ 127.0.0.1:8081/; do
            curl -sS -m 10 -o /dev/null -w '%{http_code}\n' -x http://127.0.0.1:3128 http://$url
        done"""])
    same("a proxy's client asks for an address", r.out.split()[:2], ["200", "403"])
    for address, outcome in (("93.184.216.10", "allowed"), ("93.184.216.11", "blocked"), ("127.0.0.1", "blocked")):
        e = r.one(what="request", address=address)
        check(f"which is told as one, with its client: {address}", e.get("outcome") == outcome and e.get("host") == "" and
              e.get("source_port"), e)


@case
def redirect():
    r = run({"allow": [WWW, ECHO, {"address": "93.184.216.27", "port": 7, "protocol": "tcp"}]}, """
        for family in (socket.AF_INET, socket.AF_INET6):
            s = dial("echo.example.com", 7, family); s.sendall(b"r"); say(s.recv(1).decode())
        s = socket.create_connection(("93.184.216.27", 7), 5); s.sendall(b"x"); say(s.recv(5).decode())
        for address in (("93.184.216.28", 7), ("127.0.0.1", 61053), ("10.0.2.100", 61053)):
            try: say(all_of(dial(*address, timeout=5)).decode())
            except OSError as e: say(type(e).__name__)
    """, redirect=True)
    same("REDIRECT does the same", [a for a in r.said], ["r", "r", "x", "<reset>", "<reset>", "ConnectionRefusedError"]) or print("#", r)


@case
def nothing_to_lose():
    """What a broker has that is at work: no file, no capability, no way to get one."""
    box = netbox.Box(world, NETBOX, BROKER, {"allow": [WWW]}, "print('up', flush=True); time.sleep(2)")
    box.process.stdout.readline()
    try:
        with open(f"/proc/{box.pid}/status") as f:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        kinds = [os.readlink(f"/proc/{box.pid}/fd/{n}").split(":")[0] for n in os.listdir(f"/proc/{box.pid}/fd")]
    except PermissionError:
        box.end()
        skip("what the broker has", "of a process that is not dumpable only root can look")
        return
    box.end()
    same("no capabilities", {status[k].strip("0") for k in ("CapInh", "CapPrm", "CapEff", "CapAmb")}, {""})
    same("no new privileges, and a filter", (status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
    same("sockets, the loop's own descriptors, and nothing else", sorted(set(kinds) - {"socket", "pipe", "anon_inode"}), ["/dev/null"])
    check("few of them", len(kinds) < 56, kinds)
    if os.geteuid() == 0 and not user:
        same("an id of its own, and no groups", (set(status["Uid"].split()), status["Groups"].strip()), ({"65534"}, ""))


# ---------------------------------------------------------------- floods

@case
def few_descriptors():
    """A caller with a low limit: fewer connections, refused and told; no spinning, no end."""
    r = run({"allow": [ECHO]}, """
        at = socket.gethostbyname("echo.example.com")
        conns = []; ok = 0
        for i in range(100):
            c = socket.socket(); c.settimeout(5)
            try: c.connect((at, 7)); conns.append(c); c.sendall(b"q"); ok += c.recv(1) == b"q"
            except OSError: pass
        say(ok)
        for c in conns: c.close()
        for refused in range(100):  # until the broker has seen it
            time.sleep(0.05)
            s = dial("echo.example.com", 7); got = 0
            try: s.sendall(b"x" * 200000); s.shutdown(1); got = len(all_of(s))
            except OSError: pass
            if got == 200000: break
        say(got); say(refused)
    """, files=320)
    if r.code:
        check("few descriptors", False, r)
        return
    check("some connections, and the rest refused", 5 < r.said[0] < 60, r)
    same("each of the others is told", r.count(outcome="blocked", detail="too many connections are open at a time"),
         100 - r.said[0] + r.said[2])
    same("and afterwards it works as before", r.said[1], 200000)


def memory_kib(pid):
    with open(f"/proc/{pid}/status") as f:
        return int(next(line for line in f if line.startswith("VmRSS")).split()[1])


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


@case
def floods():
    box = netbox.Box(world, NETBOX, BROKER, {"allow": [WWW, ECHO, {"host": "*.sub.example.com", "port": 443}], "connections": 2000}, """
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
        def query(name, i):
            return struct.pack(">HHHHHH", i & 0xffff, 0x100, 1, 0, 0, 0) + b"".join(bytes([len(p)]) + p for p in name.split(b".")) + b"\\0\\0\\1\\0\\1"
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(("10.0.2.100", 53)); s.settimeout(2)
        answers = 0
        for i in range(10000):
            s.send(query(b"x%d.off.example.com" % i if i % 2 else b"same.off.example.com", i))
            answers += len(s.recv(1500)) > 0
        say(answers)
        for i in range(10000):
            s.send(query(b"x%d.sub.example.com" % i, i)); s.recv(1500)
        print("names", flush=True); time.sleep(0.6)
        # Hellos that never end.
        slow = []
        for i in range(1000):
            c = dial("www.example.com", 443); c.sendall(b"\\x16\\x03\\x01"); slow.append(c)
        print("slow", flush=True)
        s = dial("echo.example.com", 7); s.sendall(b"!"); say(s.recv(1).decode())
        time.sleep(6)
        say(sum(all_of(c)[:1] == b"\\x15" for c in slow))
        # As many at once.
        conns = []
        at = socket.gethostbyname("echo.example.com")
        for i in range(1000):
            c = socket.socket(); c.setblocking(False); c.connect_ex((at, 7)); conns.append(c)
        ok = 0
        for c in conns:
            c.settimeout(10); c.sendall(b"q"); 
        for c in conns: ok += c.recv(1) == b"q"
        say(ok)
        print("open", flush=True)
        time.sleep(0.5)
        for c in conns: c.close()
        time.sleep(1)
        print("closed", flush=True)
        time.sleep(0.7)
    """)
    seen = {}
    lines = []
    for line in box.process.stdout:
        line = line.strip()
        lines.append(line)
        if line[:1].isalpha():
            try:
                seen[line] = (memory_kib(box.pid), descriptors(box.pid))
            except PermissionError:
                seen[line] = None
    r = box.end()
    values = [json.loads(x) for x in lines if not x[:1].isalpha()]
    if r.code or len(values) < 4:
        check("floods", False, [lines, r])
        return
    same("10,000 lookups are answered", values[0], 10000)
    same("and counted, each", r.count(outcome="blocked", what="lookup"), 10000)
    same("of the same name, too", r.count(outcome="blocked", what="lookup", host="same.off.example.com"), 5000)
    check("in far fewer events", len(r.told(outcome="blocked", what="lookup")) < 4000, len(r.told(outcome="blocked", what="lookup")))
    same("while 1,000 hellos do not end, others go on", values[1], "!")
    same("and each of them is refused in time", values[2], 1000)
    same("1,000 connections at a time", values[3], 1000)
    same("each connection is counted", r.count(outcome="allowed", host="echo.example.com", what="connection"), 1001)
    if all(seen.values()):
        print("# memory (KiB) and descriptors:", seen)
        check("memory is bounded", max(m for m, _ in seen.values()) < 64 << 10, seen)
        check("descriptors are given back", seen["closed"][1] <= seen["names"][1] + 20, seen)
    else:
        skip("memory and descriptors", "of a process that is not dumpable only root can look")


done()
