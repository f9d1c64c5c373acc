"""Ways out of a box that has a network, as tools of this kind were left: none may reach anything that no rule
names. What arrived at the servers of the test's internet is the judge, not what the attack believes.
Each set of attacks is run again where the one thing in its way is missing, and must succeed there.
usage: test_escapes.py PALE ATTACKS-DIRECTORY"""
import base64

from boxed import *

SCRIPTS = os.path.join(os.path.dirname(os.path.dirname(HERE)), "attacks", "egress")
EVIL = "evil.example.net"
EVIL4, EVIL6 = zone.NET4 + "17", zone.NET6 + "11"
GIVEN = {"allowed": "www.example.com", "target": EVIL, "address": EVIL4, "address6": EVIL6, "host4": zone.HOST4,
         "host6": "2a01:4f8:1::2", "canary": 8081, "udp": "udp.example.com"}
FINE_NAMES = {"www.example.com", "v4only.example.com", "v6only.example.com", "echo.example.com", "smtp.example.com", "git.example.com",
              "udp.example.com", "h1only.example.com", "closed.example.com"}
FINE = {a for n in FINE_NAMES for a in zone.NAMES[n].get("a", []) + zone.NAMES[n].get("aaaa", [])}


def plain(address):
    return address.removeprefix("::ffff:")


def script(model, name, given, flags=(), **more):
    r = Run(model, PYTHON, os.path.join(SCRIPTS, name), data=json.dumps(given).encode(), flags=["--ro", SCRIPTS, *flags], **more)
    try:
        r.results = json.loads(r.out)
    except ValueError:
        r.results = {}
        check(f"{name} ran", False, r)
    return r


def only_allowed(what, fine=FINE, names=FINE_NAMES):
    """Nothing arrived but what the rules name: no connection, no datagram, no lookup, no request."""
    seen = world.seen()
    wrong = [e for e in seen if e["kind"] in ("connect", "datagram") and plain(e["address"]) not in fine | {zone.RESOLVER4, zone.RESOLVER6}]
    wrong += [e for e in seen if e["kind"] in ("canary", "metadata")]
    wrong += [e for e in seen if e["kind"] == "lookup" and e["name"].lower() not in names]
    wrong += [e for e in seen if e["kind"] == "tls" and (e["sni"] or "").lower() not in names]
    wrong += [e for e in seen if e["kind"] == "request" and e["host"].lower().rstrip(".") not in names]
    return check(f"{what}: nothing arrived that the rules do not name", not wrong, json.dumps(wrong, indent=0)[:3000])


def outside_of_v1(path):
    from urllib.parse import unquote
    path = path.split("?")[0].split("#")[0]
    for _ in range(3):
        path = unquote(path).replace("\\", "/")
    parts = []
    for part in path.split("/"):
        part = part.split(";")[0]
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return parts[:1] != ["v1"]


@case
def doors():
    """Names in every door that takes one."""
    world.clear()
    r = script(network(), "doors.py", GIVEN)
    only_allowed("names in every door")
    by_door = {}
    for what, got in r.results.items():
        if what.startswith("same: "):
            check(f"{what}: the allowed name is known", "the allowed host answered" in got or "TLS server" in got, got)
        else:
            by_door.setdefault(what.split(": ")[0], {})[what] = got
    for door, got in by_door.items():
        through = {k: v for k, v in got.items() if not v.startswith("no")}
        check(f"{door}: {len(got)} names, none goes through", not through, through)
    told = r.find(name=EVIL) + r.find(host=EVIL)
    check("the name is in `blocked`, as it is compared", told, r.blocked)
    check("control characters do not reach the log as such", "\\u0000" not in r.text and "\0" not in r.text, "")
    verified("names in every door", r)
    # The same doors where the target is allowed: each must open.
    r = script(network([*RULES, {"host": EVIL, "ports": ["80", "443"]}]), "doors.py", {**GIVEN, "plain": True})
    for door in ("lookup", "CONNECT", "proxied URL", "SOCKS5", "SOCKS4a"):
        check(f"{door}: open where a rule allows", r.results.get(f"{door}: plain", "").startswith("got"), r.results)


@case
def hellos():
    world.clear()
    r = script(network(), "tls.py", GIVEN)
    for what, got in r.results.items():
        if what.startswith("fine: "):
            check(f"TLS: {what}", got.startswith("got"), got)
        else:
            check(f"TLS: {what}: refused", got.startswith("no"), got)
            if "never ends" not in what:
                check(f"TLS: {what}: without waiting", float(got.split("after ")[1].split()[0]) < 4.5 if "after" in got else True, got)
    only_allowed("TLS hellos")
    check("a name in the hello that is not the name: told", r.find(detail=lambda d: d and "SNI" in d) or
          r.find(blocked=False, detail=lambda d: d and "SNI" in d), r.blocked)
    r = script(network([{"host": "www.example.com", "port": 443, "protocol": "tcp"}]), "tls.py", {**GIVEN, "only": ["another name"]})
    check("as a rule for raw TCP it goes through, as documented", r.results.get("another name", "").startswith("got"), r.results)


@case
def requests():
    for what, more, tls in (("clear", {}, False), ("intercepted", {"intercept": True}, True)):
        port = 443 if tls else 80
        rule = {"host": "www.example.com", "port": port, "methods": ["GET"], "paths": ["/v1/**"], **more}
        world.clear()
        r = script(network([rule], None), "asked.py", {**GIVEN, "port": port, "tls": tls})
        only_allowed(f"requests, {what}")
        check(f"requests, {what}: an ordinary one", "200 OK" in r.results.get("fine: an ordinary request", ""), r.results)
        check(f"requests, {what}: two on one connection", r.results.get("fine: two of them", "").count("HTTP/1.1 200") == 2, r.results)
        seen = world.seen("request")
        same(f"requests, {what}: no other method arrived", sorted({e["method"].upper() for e in seen} - {"GET"}), [])
        bad = [e["path"] for e in seen if not e["path"].startswith("/v1/") or outside_of_v1(e["path"])]
        same(f"requests, {what}: no other path arrived, however a server reads it", bad, [])
        same(f"requests, {what}: nothing smuggled", [e for e in seen if any(k.lower() == "x-attack" for k, _ in e["headers"])], [])
        same(f"requests, {what}: no request that a server could not read", world.seen("bad-request"), [])
        check(f"requests, {what}: told, with method and path", r.find(blocked=False, method="POST", path="/admin"), r.text[-1500:])
        # Without methods and paths they are the server's to judge.
        world.clear()
        script(network([{"host": "www.example.com", "port": port, **more}], None), "asked.py", {**GIVEN, "port": port, "tls": tls})
        seen = world.seen("request")
        check(f"requests, {what}: without the rule's limits they arrive", {"POST", "DELETE"} <= {e["method"] for e in seen} and
              any(e["path"] == "/admin" for e in seen), {e["method"] for e in seen})
        only_allowed(f"requests, {what}, any method")


@case
def requests_2():
    """Requests of HTTP/2 that would be several, or other ones, for whoever writes them down as text. (What the server
    speaks is what the client is offered: none is translated.)"""
    host = "www.example.com"
    world.clear()
    r = script(network([{"host": host, "port": 443, "methods": ["GET"], "paths": ["/v1/**"]}], None), "streams.py", GIVEN)
    for what, got in r.results.items():
        if what.startswith("fine: "):
            same(f"HTTP/2: {what}", got, "200")
    only_allowed("HTTP/2")
    seen = world.seen("request")
    same("HTTP/2: only what is allowed arrived", sorted({(e["method"], e["path"].split("?")[0], e["host"].lower()) for e in seen}),
         [("GET", "/v1/ok", host)])
    odd = [e for e in seen if any("attack" in (k + v).lower() or "\n" in k + v or "\0" in k + v for k, v in e["headers"])]
    same("HTTP/2: nothing smuggled", odd, [])
    world.clear()
    script(network([{"host": host, "port": 443, "intercept": True}], None), "streams.py", GIVEN)
    check("HTTP/2: without the rule's limits more arrives", {"POST", "GET"} <= {e["method"] for e in world.seen("request")}, world.seen("request"))


@case
def addresses():
    world.clear()
    r = script(network(), "addresses.py", GIVEN)
    results = r.results.get("results", {})
    for what, got in results.items():
        if what.startswith("the broker's port, directly") and " 53" in what:
            continue  # it is the resolver, as at every address
        check(f"{what}: nothing", got.startswith("no"), got)
    only_allowed("addresses")
    for what in ("metadata at 169.254.169.254 80", f"the target at {EVIL4} 80", f"the target at {EVIL6} 80", "private 10.20.30.40 80"):
        took = [r.results["ms"][what]]
        while took[-1] >= 50 * SLACK and len(took) < 6:  # the machine may be busy with others
            took.append(script(network(), "addresses.py", {**GIVEN, "only": [what]}).results["ms"][what])
        check(f"{what}: at once", took[-1] < 50 * SLACK, took)
    check("in `blocked`", r.find(address="169.254.169.254", port=80) and r.find(address=EVIL4, port=80), r.blocked)
    check("mapped addresses are told as what they are", not r.find(address=lambda a: a and a.startswith("::ffff:")), r.blocked)
    # Outside of a box the same attempts arrive.
    works = ["metadata at 169.254.169.254 80", "metadata at ::ffff:169.254.169.254 80", f"the target at {EVIL4} 80", f"the target at {EVIL6} 80",
             f"the host at {zone.HOST4} 8081", "the host's loopback at 127.0.0.1 8081", "private 10.20.30.40 80", "UDP to the target",
             "some synthetic address", "source address", "a ring", "a socket of another kind: MPTCP"]
    world.clear()
    p = world.run([PYTHON, os.path.join(SCRIPTS, "addresses.py")], env=env,
                  input=json.dumps({**GIVEN, "only": works + ["data by a lookup of type 16"]}).encode())
    out = json.loads(p.stdout)["results"]
    for what, got in out.items():
        if "data by" not in what:
            check(f"{what}: works outside", got.startswith("got"), got)
    check("data in a lookup: arrives outside", [e for e in world.seen("lookup") if "c2VjcmV0" in e["name"]], world.seen())


@case
def where_allowed_names_lead():
    """The address that is dialled is the one that is checked: names of rules do not lead to where nobody may go."""
    bad = {"to-loopback": 8081, "to-metadata": 80, "to-private": 80, "to-cgnat": 80, "to-host": 8081, "to-host6": 8081, "to-hosts-lan": 8081,
           "to-mapped": 80, "to-nat64": 80, "to-6to4": 80, "to-ula": 80, "to-zero": 8081, "to-multicast": 80, "to-synthetic": 80,
           "loop-from-hosts": 8081}
    allow = [{"host": f"{n}.example.com", "port": p, "protocol": "http"} for n, p in bad.items()]
    world.clear()
    cases = [{"name": n, "argv": ["curl", "-sS", "-m", "5", f"http://{n}.example.com:{p}/"]} for n, p in bad.items()]
    r = inside(network(allow, None), cases)
    for n, p in bad.items():
        got = r.cases.get(n, {})
        check(f"{n}: not reached, at once", "hello" not in got.get("out", "") and "CANARY" not in got.get("out", "") and got.get("seconds", 9) < 4, got)
        check(f"{n}: told, and why", r.find(host=f"{n}.example.com", port=p, detail=lambda d: bool(d)) or r.find(host=f"{n}.example.com", port=p, reason=lambda d: bool(d)), r.blocked)
    wrong = [e for e in world.seen() if e["kind"] in ("connect", "canary", "metadata") and plain(e["address"]) not in (zone.RESOLVER4,)]
    same("and nothing arrived", wrong, [])
    # A rule that names the range lets the name lead there.
    r = inside(network([{"host": "to-private.example.com", "port": 80, "address": "10.20.30.0/24"}], None), [cases[2]])
    check("a private address that the rule names is reached", "hello from to-private" in r.cases["to-private"]["out"], r.cases)
    r = inside(network([{"host": "to-loopback.example.com", "port": 8081, "protocol": "http", "address": "127.0.0.0/8"}], None), [cases[0]])
    check("even loopback, if the rule says so", "HOST-CANARY" in r.cases["to-loopback"]["out"], r.cases)


@case
def rebinding():
    curl = "curl -sS -m 5 http://rebind.example.com:8081/ http://rebind.example.com:80/; sleep 0.1;"
    world.answer("rebind.example.com", turns=[{"a": [zone.NET4 + "79"], "ttl": 0}, {"a": ["127.0.0.1"], "ttl": 0}])
    world.clear()
    r = Run(network([{"host": "rebind.example.com", "ports": ["80", "8081"], "protocol": "http"}], None), "sh", "-c", "curl -sS http://rebind.example.com/;" + curl * 3)
    check("a name that turns: the first answer is good", "hello from rebind" in r.out, r)
    check("and then it does not lead to loopback", "CANARY" not in r.out and not world.seen("canary"), r)
    r = Run(network([{"host": "mixed.example.com", "ports": ["80", "8081"], "protocol": "http"}], None), "sh", "-c",
            "curl -sS -m 5 http://mixed.example.com/; curl -sS -m 5 http://mixed.example.com:8081/")
    check("of two addresses the good one only", "hello from mixed" in r.out and "CANARY" not in r.out and not world.seen("canary"), r)


@case
def poisoning_inside():
    """Whatever the box believes about names is its own affair."""
    world.clear()
    syn = "$(getent ahostsv4 www.example.com | head -1 | cut -d' ' -f1)"
    cases = {
        "--resolve to the target": f"curl -sS -m 5 --resolve www.example.com:80:{EVIL4} http://www.example.com/",
        "--resolve of the target to an allowed": f"curl -sS -m 5 --resolve {EVIL}:80:{syn} http://{EVIL}/",
        "the same with TLS": f"curl -ksS -m 5 --resolve {EVIL}:443:{syn} https://{EVIL}/",
        "--connect-to": f"curl -sS -m 5 --connect-to www.example.com:80:{EVIL}:80 http://www.example.com/",
        "the hosts file": f"echo '{EVIL4} www.example.com' >> /etc/hosts; curl -sS -m 5 http://www.example.com/",
        "HOSTALIASES": f"echo 'www {EVIL}' > /tmp/h; HOSTALIASES=/tmp/h curl -sS -m 5 http://www/",
        "another resolver": f"dig +short +time=1 +tries=1 @{zone.RESOLVER4} {EVIL}",
        "a resolver by TCP": f"dig +tcp +short +time=1 +tries=1 @{zone.RESOLVER6} {EVIL}",
        "DNS over HTTPS": f"curl -sS -m 5 --doh-url https://{zone.RESOLVER4}/dns-query http://{EVIL}/",
        "a resolver of the box's own": f"{PYTHON} -c 'import socket; s=socket.socket(2,2); s.bind((\"127.0.0.1\",5353)); print(1)'; curl -sS -m 5 http://{EVIL}/",
    }
    r = inside(network(), [{"name": n, "argv": ["sh", "-c", c]} for n, c in cases.items()])
    for n in cases:
        check(f"poisoning: {n}: nothing gained", "hello from evil" not in r.cases[n]["out"] and EVIL4 not in r.cases[n]["out"], r.cases[n])
    only_allowed("poisoning")


@case
def fronting():
    """Inside of TLS only interception sees another Host; both are documented."""
    front = [{"name": v, "argv": ["curl", "-sS", "-m", "5", f"--http{v}", "-H", f"Host: {EVIL}", "https://www.example.com/"]} for v in ("1.1", "2")]
    r = inside(network(), front)
    for v in ("1.1", "2"):
        check(f"fronting over HTTP/{v} without interception: unseen, as the documents say", f"hello from {EVIL}" in r.cases[v]["out"], r.cases[v])
    world.clear()
    r = inside(network([{"host": "www.example.com", "port": 443, "intercept": True}]), front)
    for v in ("1.1", "2"):
        check(f"fronting over HTTP/{v} with interception: refused, in words", f"hello from {EVIL}" not in r.cases[v]["out"] and "Pale" in r.cases[v]["out"], r.cases[v])
    only_allowed("fronting")


@case
def programs():
    """The small ones in C, that try the kernel."""
    world.clear()
    synthetic = "$(getent ahostsv4 www.example.com | head -1 | cut -d' ' -f1)"
    simple = ["nft_flush", "route_add", "transparent_bind", "packet_mark", "device_down", "see_broker"]
    flags = ["--ro", built]
    cases = [{"name": n, "argv": [f"{built}/{n}"]} for n in simple]
    cases += [{"name": "unspec_connect", "argv": ["sh", "-c", f"{built}/unspec_connect {synthetic} 80 {a} {p}"]} for a, p in (("81.2.69.142", 8081),)]
    cases += [{"name": f"unspec_connect {a}", "argv": ["sh", "-c", f"{built}/unspec_connect {synthetic} 80 {a} {p}"]}
              for a, p in (("127.0.0.1", 8081), (EVIL4, 80), ("169.254.169.254", 80))]
    cases += [{"name": f"fast_open {a}", "argv": [f"{built}/fast_open", a, p]} for a, p in ((EVIL4, "80"), ("169.254.169.254", "80"), (zone.HOST4, "8081"))]
    r = inside(network(), cases)
    for c in cases:
        got = r.cases[c["name"]]
        check(f"{c['name']}: denied", got["out"].startswith("denied"), got)
    only_allowed("programs")
    check("opening a connection with data is told, too", r.find(address=EVIL4, port=80), r.blocked)
    # Outside, with the right to, they work.
    if root and not user:
        for n in simple[:-1]:
            p = subprocess.run(["unshare", "-n", "sh", "-c", f"ip link set lo up; exec {built}/{n}"], capture_output=True, text=True)
            check(f"{n}: works outside", p.stdout.startswith("SUCCEEDED"), p.stdout)
    p = world.run([f"{built}/unspec_connect", zone.NET4 + "10", "80", zone.HOST4, "8081"])
    check("unspec_connect: works outside", p.stdout.startswith(b"SUCCEEDED"), p.stdout)
    p = world.run([f"{built}/fast_open", EVIL4, "80"])
    check("fast_open: works outside", p.stdout.startswith(b"SUCCEEDED"), p.stdout)


@case
def relays():
    """An allowed host that relays is outside of what a sandbox can see; what can be seen is refused."""
    world.clear()
    lines = {
        "CONNECT within an allowed connection": f"printf 'CONNECT {EVIL}:80 HTTP/1.1\\r\\nHost: {EVIL}\\r\\n\\r\\n' | nc -N -w2 www.example.com 80",
        "CONNECT through a tunnel": f"curl -sS -m 5 -p -x http://127.0.0.1:3128 --preproxy socks5h://127.0.0.1:3128 http://{EVIL}/",
        "proxy by name": f"curl -sS -m 5 -x http://www.example.com:80 http://{EVIL}/",
        "FTP over the proxy": f"curl -sS -m 5 -x http://127.0.0.1:3128 ftp://{EVIL}/",
    }
    r = inside(network(), [{"name": n, "argv": ["sh", "-c", c]} for n, c in lines.items()])
    for n in lines:
        check(f"{n}: refused", "hello from evil" not in r.cases[n]["out"], r.cases[n])
    only_allowed("relays")


nothing_left()
done()
