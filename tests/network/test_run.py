"""A run with network rules, from the supervisor's side: who starts the broker, how connections come to it, what of it
shows in the log, the result and the line at the end. usage: test_run.py PALE BROKER LIBRARY-USER BOX"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "egress"))
import standin
from tap import *

pale, broker, library_user, pale_box = (os.path.abspath(p) for p in sys.argv[1:5])
PYTHON = "/usr/bin/python3"
try:
    world = standin.enter()
except standin.NotHere as e:
    skip("boxes in a test internet", str(e), "egress")
    done()
state = os.path.join(world.place, "state")
env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": world.place, "LANG": "C.UTF-8", "PALE_STATE_DIR": state}
env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
# In a world of an ordinary user's the build belongs to nobody, and would not be trusted.
env["PALE_EGRESS_PROGRAM"] = broker
ALLOW = [{"host": "www.example.com", "port": 80, "protocol": "http"},
         {"address": "93.184.216.10", "port": 8080, "protocol": "tcp"}]
DENY = [{"host": "other.example.com", "reason": "use the mirror"}]
number_of_policies = 0


def policy(network):
    global number_of_policies
    number_of_policies += 1
    path = os.path.join(world.place, f"p{number_of_policies}.json")
    with open(path, "w") as f:
        json.dump({"pale": 1, "network": network}, f)
    return path


def run(command, network=None, flags=("--json",), more=None, **kw):
    p = subprocess.run([pale, "run", "-p", policy(network or {"allow": ALLOW, "deny": DENY}), *flags, "--", *command],
                       env={**env, **(more or {})}, cwd=world.place, stdin=subprocess.DEVNULL, capture_output=True,
                       timeout=60, **kw)
    p.err = p.stderr.decode(errors="replace")
    p.json = json.loads(p.stdout) if p.stdout[:1] == b"{" else {}
    p.events = log(p.json.get("audit_id"))
    return p


def log(id):
    try:
        with open(os.path.join(state, "runs", id, "audit.jsonl")) as f:
            return [json.loads(line) for line in f]
    except (OSError, TypeError):
        return []


def find(list, **want):
    return [e for e in list if all(e.get(k) == v for k, v in want.items())]


def brokers(supervisor):
    """Its children of that name; their /proc is closed to an ordinary user."""
    found = []
    try:
        with open(f"/proc/{supervisor}/task/{supervisor}/children") as f:
            for pid in f.read().split():
                with open(f"/proc/{pid}/comm") as comm:
                    if comm.read().startswith("pale-egress"):
                        found.append(int(pid))
    except OSError:
        pass
    return found


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


TRY = """
import socket, sys, time
for target in sys.argv[1:]:
    host, port = target.rsplit(":", 1)
    t = time.monotonic()
    try:
        s = socket.create_connection((host, int(port)), 5)
        s.sendall(b"GET / HTTP/1.1\\r\\nHost: " + host.encode() + b"\\r\\nConnection: close\\r\\n\\r\\n")
        print(target, "answered" if s.recv(12) else "closed", end=" ")
    except OSError as e:
        print(target, e.strerror, end=" ")
    print(int((time.monotonic() - t) * 1000) < 2000)
"""


def attempts(*targets):
    return [PYTHON, "-c", TRY, *targets]


@case
def told():
    r = run(attempts("www.example.com:80", "8.8.8.8:443", "evil.example.net:443", "www.example.com:81", "::1:80"))
    out = r.json.get("stdout", "").splitlines()
    check("what a rule allows is reached", out and out[0].startswith("www.example.com:80 answered"), r.stdout + r.stderr)
    check("an address that no rule covers is refused at once", out[1:2] == ["8.8.8.8:443 Permission denied True"], out)
    check("a name that no rule names is not known", "Name or service not known True" in out[2], out)
    check("loopback is the box's own", "Connection refused" in out[4], out)
    used = find(r.json["network"]["used"], host="www.example.com", port=80)
    check("the result says what was used, and the bytes", len(used) == 1 and used[0]["bytes_in"] > 0 and
          used[0]["bytes_out"] > 0 and r.json["network"]["bytes_in"] == used[0]["bytes_in"], r.json["network"])
    check("with the rule", "www.example.com" in used[0]["rule"] and ".json:1:" in used[0]["where"], used)
    e = find(r.events, event="network.allowed", host="www.example.com")
    check("the log has the connection", len(e) == 1 and e[0]["address"] and e[0]["duration_us"] > 0, r.events)
    for what, entries in (("the log", find(r.events, event="network.allowed")), ("dns.blocked", find(r.events, event="dns.blocked")),
                          ("network.blocked", find(r.events, event="network.blocked")), ("the result", r.json["blocked"])):
        check(f"{what} names the program", entries and all(e.get("program", "").startswith("/usr/bin/python3") for e in entries), entries)
    check("address: in the result", find(r.json["blocked"], kind="network", address="8.8.8.8", port=443, errno="EACCES", count=1), r.json["blocked"])
    check("name: in the result, and as one lookup", find(r.json["blocked"], kind="dns", name="evil.example.net", count=1), r.json["blocked"])
    check("the log has both questions", sorted(e["type"] for e in find(r.events, event="dns.blocked", name="evil.example.net")) == [1, 28], r.events)
    check("port: in the result", find(r.json["blocked"], kind="network", host="www.example.com", port=81, count=1), r.json["blocked"])
    check("nothing that is not so", not find(r.json["blocked"], port=80), r.json["blocked"])


@case
def lookups():
    """A program asks for both kinds of address at once, and means one thing."""
    LOOK = "import socket\nfor _ in range({}):\n try: socket.getaddrinfo('evil.example.net', 443{})\n except OSError: pass"
    for what, network in (("the broker", None), ("the first process", {"rate": "1MiB"})):
        for times, family, questions in ((30, "", 60), (3, ", socket.AF_INET6", 3), (1, ", socket.AF_INET", 1)):
            r = run([PYTHON, "-c", LOOK.format(times, family)], network=network)
            check(f"{what}: {times} lookups are as many", find(r.json["blocked"], kind="dns", count=times), r.json["blocked"])
            told = [e.get("count", 1) for e in r.events if e["event"] == "dns.blocked" or e["event"] == "events.suppressed"]
            check("the log counts questions", sum(told) == questions, r.events)
            p = subprocess.run([pale, "audit", "show", "--blocked", r.json["audit_id"]], env=env, capture_output=True, text=True)
            check("the log's table counts lookups", re.search(rf"^ +{times}  name +evil.example.net ", p.stdout, re.M), p.stdout)


@case
def open_at_the_end():
    """What is open when the box ends is told, with its bytes; so is what it did last."""
    hold = """
import os, socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
s.sendall(b"GET /hold/4 HTTP/1.1\\r\\nHost: www.example.com\\r\\n\\r\\n")
while b"begun" not in s.recv(1000): pass
os._exit(0)
"""
    for what, host, port, event in (("raw", "93.184.216.10", "8080", "network.allowed"), ("a request", "www.example.com", "80", "network.request")):
        r = run([PYTHON, "-c", hold, host, port])
        e = find(r.events, event=event, outcome="box_ended", port=int(port))
        check(f"{what}: told with its bytes", len(e) == 1 and e[0]["bytes_in"] >= 6 and e[0]["address"] and "detail" not in e[0], r.events)
        e = find(r.events, event="network.allowed", outcome="box_ended")
        check("the connection too", len(e) == 1 and e[0]["bytes_out"] > 20, r.events)
        check("the result says how many were", [(u["connections"], u["box_ended"]) for u in r.json["network"]["used"]] == [(1, 1)], r.json["network"])
    r = run(attempts("www.example.com:80"))
    check("one that was over is not among them", r.json["network"]["connections"] == 1 and "box_ended" not in json.dumps([r.json, r.events]), r.events)
    nowhere = {"allow": [{"address": "2606:2800:dead::1", "port": 80, "protocol": "tcp"}]}
    dialling = [PYTHON, "-c", "import socket, time; s = socket.create_connection(('2606:2800:dead::1', 80)); time.sleep(0.2)"]
    r = run(dialling, network=nowhere)
    check("one that was being made still", find(r.events, event="network.unreachable", outcome="box_ended") and not r.json["network"]["used"], r.events)
    check("of which nobody says that the network failed", "not reached" not in run(dialling, network=nowhere, flags=()).err, r.err)
    # The broker stands still while the box makes its last connections, and ends.
    last = """
import os, socket, sys
where = [socket.gethostbyname("www.example.com"), "93.184.216.10"]
print("ready", flush=True)
sys.stdin.readline()
for i in range(100):
    for address, port in zip(where, (81, 8080)):
        s = socket.create_connection((address, port))
        s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
os._exit(0)
"""
    p = subprocess.Popen([pale, "run", "-p", policy({"allow": ALLOW}), "--", PYTHON, "-c", last], env=env, cwd=world.place,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdout.readline()
    stopped = brokers(p.pid)
    os.kill(stopped[0], signal.SIGSTOP)
    p.stdin.write(b"\n")
    p.stdin.flush()
    time.sleep(0.7)
    os.kill(stopped[0], signal.SIGCONT)
    p.communicate(timeout=20)
    shown = subprocess.run([pale, "audit", "show", "--json"], env=env, capture_output=True, text=True)
    events = [json.loads(line) for line in shown.stdout.splitlines()]
    count = {name: sum(e.get("count", 1) for e in find(events, event=name)) for name in ("network.allowed", "network.unreachable", "network.blocked")}
    check("connections that it made last, and that nobody had taken yet", count["network.allowed"] + count["network.unreachable"] == 100, events)
    check("refused ones too", count["network.blocked"] == 100, events)


@case
def processor_time():
    """What the broker uses for the box is the box's: it may make it work as much as it likes."""
    load = """
import resource, socket
b = bytearray(1 << 20)
while True:
    s = socket.create_connection(("www.example.com", 80))
    s.sendall(b"GET /bytes/50000000 HTTP/1.0\\r\\nHost: www.example.com\\r\\n\\r\\n")
    while s.recv_into(b):
        u = resource.getrusage(resource.RUSAGE_SELF)
        print(int(1000 * (u.ru_utime + u.ru_stime)), flush=True)
"""
    r = run([PYTHON, "-c", load], flags=("--json", "--cpu-time", "600ms", "--timeout", "50s", "--output", "1KiB"))
    own, brokers_part = int(r.json["stdout"].split()[-1]), r.json["network"]["cpu_ms"]
    check("it counts against limits.cpu", r.json["outcome"] == "cpu time" and own < 550, [own, r.json])
    # Without a group the last look was some milliseconds before the end.
    check("in the usage, together", abs(r.json["usage"]["cpu_ms"] - own - brokers_part - 100) < 200 and brokers_part > 50,
          [own, brokers_part, r.json["usage"]])
    r = run(["true"])
    check("getting ready does not", r.json["network"]["cpu_ms"] <= 10, r.json["network"])


@case
def lost_datagrams():
    """To a port of an allowed name that no rule for udp has: nobody is there to answer, so the call says it."""
    r = run([PYTHON, "-c", """
import socket, time
for family in (socket.AF_INET, socket.AF_INET6):
    s, to = socket.socket(family, socket.SOCK_DGRAM), socket.getaddrinfo("www.example.com", 443, family)[0][4]
    try:
        s.sendto(b"x", to)
        print("sent")
    except OSError as e:
        print(e.strerror)
a, b = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
b.bind(("10.0.2.100", 4433))
a.sendto(b"own", ("10.0.2.100", 4433))
print(b.recv(9).decode())
"""])
    same("a datagram to a name's other port is refused at once, one of the box's own is not",
         r.json.get("stdout", "").split("\n"), ["Permission denied", "Permission denied", "own", ""])
    same("and told", sorted(e["address"][:6] for e in find(r.json.get("blocked", []), kind="network", port=443, protocol="udp")),
         ["198.18", "fd5b:a"])


@case
def literal():
    r = run(attempts("93.184.216.10:8080"))
    check("an address that a rule covers is reached", "answered" in r.json.get("stdout", ""), r.stdout + r.stderr)
    check("and told", find(r.events, event="network.allowed", address="93.184.216.10", port=8080, protocol="tcp"), r.events)


@case
def nested():
    """A sandbox in the box may have a network of its own: there an address is none of the rules'."""
    at = os.path.join(world.place, "nested.json")
    with open(at, "w") as f:
        json.dump({"pale": 1, "kernel": {"profile": "nested"}, "network": {"allow": ALLOW}}, f)
    inner = ("import socket; l=socket.create_server(('10.9.9.9',80)); c=socket.create_connection(('10.9.9.9',80)); print('own')")
    p = subprocess.run([pale, "run", "-p", at, "--", "unshare", "-Urn", "sh", "-c",
                        f"ip link set lo up; ip addr add 10.9.9.9/32 dev lo; {PYTHON} -c \"{inner}\""], env=env, cwd=world.place,
                       stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    check("a nested network's own address is reached", p.stdout == b"own\n", p.stdout + p.stderr)
    ask = "import socket; s=socket.create_connection(('8.8.8.8',81)); s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n'); print(s.recv(12))"
    p = subprocess.run([pale, "run", "-p", at, "--", PYTHON, "-c", ask], env=env, cwd=world.place, stdin=subprocess.DEVNULL,
                       capture_output=True, timeout=60)
    check("in the box itself what no rule covers is refused all the same", (b"403" in p.stdout or b"reset" in p.stderr) and
          b'connect to "8.8.8.8"' in p.stderr, p.stdout + p.stderr)


@case
def own_address():
    r = run([PYTHON, "-c", "import socket; s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.connect(('8.8.8.8',9)); print(s.getsockname()[0])"])
    check("a program can ask for its own address", r.json.get("stdout") == "10.0.2.100\n", r.stdout)


@case
def many_programs():
    """Each connection is its program's, however they are mixed."""
    both = ("import subprocess,sys\n"
            "p=[subprocess.Popen([x,'-sS','-o','/dev/null','http://www.example.com/']) if x.endswith('curl') else "
            "subprocess.Popen([x,'-q','-O','/dev/null','http://www.example.com/']) for x in ['/usr/bin/curl','/usr/bin/wget']*8]\n"
            "sys.exit(sum(x.wait() for x in p))")
    if not shutil.which("wget") or not shutil.which("curl"):
        return skip("programs are told apart", "curl and wget are not both here", "egress")
    r = run([PYTHON, "-c", both])
    same("all went well", r.returncode, 0)
    got = {}
    for e in find(r.events, event="network.allowed"):
        got[e.get("program")] = got.get(e.get("program"), 0) + e.get("count", 1)
    check("programs are told apart", set(got) == {"/usr/bin/curl", "/usr/bin/wget"} and sum(got.values()) == 16, got)


@case
def by_redirect():
    """The fallback does the same. What the state directory remembers of this kernel is taken as it is."""
    with open(os.path.join(state, "network")) as f:
        before = f.read()
    check("what the kernel can is remembered", before.endswith("nftables TPROXY"), before)
    with open(os.path.join(state, "network"), "w") as f:
        f.write(before.replace("TPROXY", "REDIRECT"))
    r = run(attempts("www.example.com:80", "93.184.216.10:8080", "www.example.com:81", "8.8.8.8:443"))
    out = r.json.get("stdout", "")
    # Where HTTP is refused, the broker answers.
    check("by REDIRECT: the same is reached", out.count("answered") == 3, r.stdout + r.stderr)
    check("by REDIRECT: the same is refused", find(r.json["blocked"], host="www.example.com", port=81) and
          find(r.json["blocked"], address="8.8.8.8", port=443), r.json.get("blocked"))
    check("by REDIRECT: with the program", all(e.get("program") for e in r.json["blocked"]), r.json.get("blocked"))
    p = subprocess.run([pale, "explain", "-p", policy({"allow": ALLOW}), "--", "true"], env=env, capture_output=True)
    check("the plan names it", b"nftables REDIRECT" in p.stdout, p.stdout + p.stderr)
    with open(os.path.join(state, "network"), "w") as f:
        f.write("5.4.0 another kernel\nnftables REDIRECT")
    p = subprocess.run([pale, "explain", "-p", policy({"allow": ALLOW}), "--", "true"], env=env, capture_output=True)
    check("what was remembered of another kernel is not taken", b"nftables TPROXY" in p.stdout, p.stdout + p.stderr)


@case
def said():
    """The line at the end: which rule, and what would allow it."""
    for target, want in (("other.example.com:80", "by the rule \"deny other.example.com\""), ("other.example.com:80", "use the mirror"),
                         ("www.example.com:81", "--allow 'http://www.example.com:81'"), ("8.8.8.8:99", "--allow 'tcp://8.8.8.8:99'"),
                         ("evil.example.net:1", "--allow 'evil.example.net'")):
        r = run(attempts(target), flags=())
        check(f"{target}: {want}", want in r.err, r.err)
    r = run(attempts("www.example.com:81"), flags=("--allow", "tcp://www.example.com:81"))
    check("with it, it is allowed", "blocked" not in r.err, r.err)
    r = run(attempts("other.example.com:80"), flags=("--json",))
    p = subprocess.run([pale, "audit", "show", "--blocked", r.json["audit_id"]], env=env, capture_output=True)
    check("pale audit show --blocked", b"other.example.com:80/ (deny other.example.com)" in p.stdout, p.stdout)
    local = {"allow": [{"host": "to-loopback.example.com", "port": 80, "protocol": "http"}]}
    r = run(attempts("to-loopback.example.com:80"), network=local, flags=())
    check("what a rule allows and is not fit to be dialled: not the rule, but why", "not a public address" in r.err and
          "`address`" in r.err and "(by the rule" not in r.err, r.err)
    r = run(attempts("to-loopback.example.com:80"), network=local)
    p = subprocess.run([pale, "audit", "show", "--blocked", r.json["audit_id"]], env=env, capture_output=True)
    check("and in the log's table", b"not a public address" in p.stdout, p.stdout)


@case
def would_allow():
    """`allow` in the result: with it as --allow the same is not refused."""
    bound = [{"host": "to-loopback.example.com", "address": "127.0.0.1", "port": 81, "protocol": "http"}]
    for what, network, target, want in (
            ("a port", {"allow": ALLOW}, "www.example.com:81", "http://www.example.com:81"),
            ("an address", {"allow": ALLOW}, "93.184.216.34:80", "93.184.216.34:80"),
            ("a name", {"allow": ALLOW}, "evil.example.net:443", "evil.example.net"),
            ("where the name leads", {"allow": [{"host": "to-loopback.example.com", "port": 80}]}, "to-loopback.example.com:80",
             "to-loopback.example.com=127.0.0.1:80"),
            ("where a rule says that it leads", {"allow": bound}, "to-loopback.example.com:80", "to-loopback.example.com=127.0.0.1:80"),
            ("a protocol", {"allow": [{"host": "www.example.com", "port": 80, "protocol": "tls"}]}, "www.example.com:80", "www.example.com:80")):
        r = run(attempts(target), network=network)
        found = [e for e in r.json["blocked"] if e["kind"] in ("network", "dns")]
        check(f"{what}: {want}", found and all(e["allow"] == want for e in found), r.json["blocked"])
        again = [PYTHON, "-c", f"import socket; socket.getaddrinfo('{want}', 443)"] if what == "a name" else attempts(target)
        r = run(again, network=network, flags=("--json", "--allow", want))
        check("and that allows it", not r.json["blocked"], r.json["blocked"])
    r = run(attempts("other.example.com:80"))
    check("a rule that denies: none", [e["allow"] for e in r.json["blocked"]] == [None], r.json["blocked"])
    none = {"rate": "1MiB"}
    r = run([PYTHON, "-c", "import ctypes; ctypes.CDLL(None).mount(0, b'/', 0, 0, 0)"], network=none)
    check("nor for what is not the network", r.json["blocked"] and all(e["allow"] is None for e in r.json["blocked"]), r.json["blocked"])
    r = run(attempts("93.184.216.34:80", "evil.example.net:443"), network=none)
    check("a box without a network: the same", sorted(e["allow"] for e in r.json["blocked"]) == ["93.184.216.34:80", "evil.example.net"],
          r.json["blocked"])


@case
def not_reached():
    """What a rule allows and the network does not looks like a refusal to the program: the caller is told."""
    closed = {"allow": [{"host": "closed.example.com", "port": 81, "protocol": "http"}]}
    r = run(attempts("closed.example.com:81"), network=closed, flags=())
    check("a line says what was not reached, and why",
          'allowed, but not reached: "closed.example.com", port 81: ECONNREFUSED' in r.err, r.err)
    r = run(attempts("closed.example.com:81"), network=closed)
    check("the result, too", find(r.json["network"]["used"], host="closed.example.com", failed=1, detail="ECONNREFUSED"), r.stdout)
    check("and --quiet does not", "not reached" not in run(attempts("closed.example.com:81"), network=closed, flags=("-q",)).err)
    r = run([PYTHON, "-c", "import socket, sys; socket.create_connection(('127.0.0.1', 3128)).close()"], flags=())
    check("nothing is said where nothing failed", "not reached" not in r.err, r.err)
    for host in "localhost", "127.0.0.1", "[::1]":
        r = run([PYTHON, "-c", "exit(1)"], flags=("--allow", f"http://{host}:8000"))
        check(f"a rule for {host}, and a failure: whose that is", "localhost of a box is its own" in r.err, r.err)
    r = run([PYTHON, "-c", "exit(1)"], flags=())
    check("without such a rule nothing of it", "localhost" not in r.err, r.err)


@case
def not_installed():
    r = run(["true"], more={"PALE_EGRESS_PROGRAM": "/nonexistent/pale-egress"}, flags=())
    check("without a broker nothing runs, and it says what is missing", r.returncode == 125 and "/nonexistent/pale-egress" in r.err and
          "installed" in r.err, r.err)
    r = run(["true"], network={"deny": DENY}, more={"PALE_EGRESS_PROGRAM": "/nonexistent/pale-egress"})
    check("where no rule allows anything, none is needed", r.returncode == 0 and "network" not in r.json, r.stdout + r.stderr)
    r = run(["true"], more={"PALE_EGRESS_PROGRAM": "/usr/bin/false"}, flags=())
    check("a broker that ends is a failure", r.returncode == 125 and "egress broker" in r.err, r.err)


@case
def cannot():
    """A user namespace in which no network namespace is to be had: the probe fails, and with it the launch."""
    other = os.path.join(world.place, "other-state")
    os.mkdir(other, 0o700)
    p = subprocess.run(["unshare", "-Ur", "sh", "-c", "echo 0 >/proc/sys/user/max_net_namespaces && exec \"$@\"", "sh", pale, "run",
                        "-p", policy({"allow": ALLOW}), "--", "echo", "ran"], env={**env, "PALE_STATE_DIR": other}, cwd=world.place,
                       stdin=subprocess.DEVNULL, capture_output=True)
    err = p.stderr.decode()
    check("where connections cannot be brought to the broker, nothing runs", p.returncode == 125 and b"ran" not in p.stdout and
          "TPROXY" in err and "REDIRECT" in err, err)
    check("and the remedy is said", "max_net_namespaces" in err, err)


@case
def deaths():
    def start():
        p = subprocess.Popen([pale, "run", "--json", "-p", policy({"allow": ALLOW}), "--", "sleep", "30"], env=env,
                             cwd=world.place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_for(lambda: brokers(p.pid))
        time.sleep(0.3)
        return p, brokers(p.pid)

    p, pids = start()
    same("one broker", len(pids), 1)
    os.kill(pids[0], signal.SIGKILL)
    begun = time.monotonic()
    out, _ = p.communicate(timeout=20)
    r = json.loads(out)
    check("a broker that is killed ends its box at once", time.monotonic() - begun < 5 and r["outcome"] == "failed" and p.returncode == 125, out)
    check("and it is said", "broker was killed by signal 9" in r["error"]["message"] and
          "broker was killed" in find(log(r["audit_id"]), event="box.end")[0]["error"], out)
    p, pids = start()
    p.kill()
    p.communicate()
    check("a supervisor that is killed takes the broker along", pids and wait_for(lambda: not lives(pids[0]), 5), pids)
    p, pids = start()
    os.kill(pids[0], signal.SIGSTOP)
    p.send_signal(signal.SIGTERM)
    p.communicate(timeout=20)
    check("one that stands still does not keep the end away", not lives(pids[0]), pids)


# The numbers of messages, from the source.
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/egress/wire.h")) as f:
    KINDS = re.findall(r"^\tEGRESS_(\w+)", re.search(r"enum egress_kind \{(.*?)\n\};", f.read(), re.S)[1], re.M)
KIND = {name: i for i, name in enumerate(KINDS, 1)}

# A broker that was taken over: it says what the supervisor must not believe.
FALSE_BROKER = """#!/usr/bin/python3
import socket, struct
s = socket.socket(fileno=0)
for i in range(2):
    socket.recv_fds(s, 4096, 64)
SIZE, READY, EVENT = 2056, %d, %d
def message(kind, body=b""):
    return struct.pack("=II", kind, 0) + body.ljust(SIZE - 8, b"\\0")
s.send(message(READY))
%s
s.recv(1)
"""


@case
def taken_over():
    event = """
def event(outcome=3, what=2, count=1, rule=-1, port=80, protocol=4, host=b"x.example.com\\0", tail=b""):
    b = bytearray(SIZE - 8)
    struct.pack_into("=IIQiHHBB", b, 0, outcome, what, count, rule, port, 0, protocol, 4)
    b[%d:%d + len(host)] = host
    return struct.pack("=II", EVENT, 0) + bytes(b)
s.send(%s)
"""
    host_at = 64
    at = os.path.join(world.place, "false-broker")
    for what, send in (("an unknown outcome", "event(outcome=99)"), ("an unknown kind of thing", "event(what=0)"),
                       ("a rule that is not there", "event(rule=3)"), ("a rule below none", "event(rule=-2)"),
                       ("two protocols", "event(protocol=3)"), ("no count", "event(count=0)"), ("too high a count", "event(count=1<<63)"),
                       ("a name without end", "event(host=b'x' * (SIZE - 8 - 64))"), ("half a message", "message(EVENT)[:100]"),
                       ("a message too long", "message(EVENT) + b'x'"), ("what only a supervisor says", "message(1)"), ("nothing", "b''")):
        with open(at, "w") as f:
            f.write(FALSE_BROKER % (KIND["READY"], KIND["EVENT"], event % (host_at, host_at, send)))
        os.chmod(at, 0o755)
        r = run(["sleep", "20"], more={"PALE_EGRESS_PROGRAM": at})
        check(f"a broker that says {what}: its box is ended", r.json.get("outcome") == "failed" and r.json.get("usage", {}).get("wall_ms", 0) < 10000 and
              "broker" in r.json["error"]["message"], r.stdout[-700:] + r.stderr)
    with open(at, "w") as f:
        f.write(FALSE_BROKER % (KIND["READY"], KIND["EVENT"], event % (host_at, host_at, "event(host=b'\\x1b[31mx\\xff\\\"\\n\\0', count=7)")))
    r = run(["sleep", "0.5"], more={"PALE_EGRESS_PROGRAM": at})
    check("what it may say is escaped", r.json.get("outcome") == "exit" and find(r.json["blocked"], count=7, port=80) and
          "\x1b" not in json.dumps(r.json["blocked"], ensure_ascii=False) and "\x1b" not in r.err, r.stdout + r.stderr)
    with open(at, "w") as f:
        f.write("#!/usr/bin/python3\nimport socket\nsocket.recv_fds(socket.socket(fileno=0), 4096, 64)\n")
    r = run(["true"], more={"PALE_EGRESS_PROGRAM": at}, flags=())
    check("one that ends while the box is built: nothing runs", r.returncode == 125 and "broker ended" in r.err, r.err)


@case
def library():
    p = subprocess.run([library_user, policy({"allow": ALLOW}), *attempts("www.example.com:80", "8.8.8.8:443")],
                       env={**env, "PALE_BOX_PROGRAM": pale_box}, cwd=world.place, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    r = json.loads(p.stdout) if p.stdout[:1] == b"{" else {}
    check("a program that uses the library has a network too", "answered" in r.get("stdout", "") and
          find(r["network"]["used"], host="www.example.com") and find(r["blocked"], address="8.8.8.8"), p.stdout + p.stderr)
    value = os.path.join(world.place, "value")
    with open(value, "w") as f:
        f.write("from-a-descriptor")
    for source in ("env:REAL", f"file:{value}", f"command:cat {value}", "fd:90"):
        with open(value) as f:
            os.dup2(f.fileno(), 90)
        p = subprocess.run([library_user, policy({"allow": [{"host": "api.example.com"}], "secrets": [
                                {"env": "KEY", "value_from": source, "hosts": ["api.example.com"], "header": "authorization"}]}),
                            "curl", "-sS", "-H", "Authorization: x", "https://api.example.com/"],
                           env={**env, "PALE_BOX_PROGRAM": pale_box, "REAL": "from-env"}, cwd=world.place, stdin=subprocess.DEVNULL,
                           capture_output=True, timeout=60, pass_fds=[90])
        os.close(90)
        check(f"and secrets from {source.split(':')[0]}", b'"exit_status": 0' in p.stdout and b"from-" not in p.stdout, p.stdout + p.stderr)


@case
def secrets():
    value = "v-" + os.urandom(8).hex()
    network = {"allow": [{"host": "api.example.com"}],
               "secrets": [{"env": "KEY", "value_from": "env:REAL", "hosts": ["api.example.com"], "header": "authorization"},
                           {"file": "/run/key", "value_from": "env:REAL", "hosts": ["api.example.com"], "header": "x-key"}]}
    held = ["sh", "-c", "echo $KEY; cat /run/key"]
    a, b = (run(held, network, more={"REAL": value}) for _ in range(2))
    kept = [line for r in (a, b) for line in r.json.get("stdout", "").split()]
    check("placeholders, new in each run", len(set(kept)) == 4 and value not in kept, [a.stdout, a.stderr])
    check("the plan is the same all the same", len({find(r.events, event="box.start")[0]["plan_digest"] for r in (a, b)}) == 1, "")
    check("the value is not in the log", value not in json.dumps(a.events) + json.dumps(b.events), "")
    for source in ("env:NOT_SET", "file:/nonexistent", "command:exit 7", "command:true", "command:printf 'a\\nb'", "fd:77"):
        r = run(["true"], {**network, "secrets": [{**network["secrets"][0], "value_from": source}]}, flags=())
        check(f"no value from {source}: nothing runs", r.returncode == 125 and "the secret \"KEY\"" in r.err, r.err)
    p = subprocess.Popen([pale, "run", "-p", policy(network), "--", "sh", "-c", "echo up; sleep 20"], env={**env, "REAL": value},
                         cwd=world.place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    p.stdout.readline()
    with open(f"/proc/{p.pid}/environ", "rb") as f:
        check("ps does not show it of the supervisor, either", value.encode() not in f.read(), "")
    # All that the supervisor could leave in a core; a sanitizer maps too much to look through.
    found = []
    with open(pale, "rb") as f:
        sanitized = b"__asan_init" in f.read()
    with open(f"/proc/{p.pid}/maps") as maps, open(f"/proc/{p.pid}/mem", "rb", 0) as memory:
        for line in maps:
            span, access = line.split()[:2]
            first, last = (int(x, 16) for x in span.split("-"))
            if "r" not in access or "[v" in line or sanitized:
                continue
            memory.seek(first)
            try:
                if value.encode() in memory.read(last - first):
                    found.append(line)
            except OSError:
                pass
    same("it is nowhere in the supervisor's memory", found, [])
    p.terminate()
    p.wait()
    p.stdout.close()


done()
