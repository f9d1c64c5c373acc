"""The rules of a running box, changed through its supervisor's door by `pale network` and by hand: in force at once, on
record first, for nobody but its owner. As root, and as an ordinary user (--user NAME, or run by one).

usage: test_live.py PALE [--user NAME]
"""
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
import standin
from tap import *

args = sys.argv[1:]
user = args[args.index("--user") + 1] if "--user" in args else None
pale = os.path.abspath(args[0])
root = os.geteuid() == 0 and not user

try:
    world = standin.enter(user)
except standin.NotHere as e:
    skip("boxes in a test internet", str(e), "egress")
    done()

place = os.path.join(world.place, "live")
runtime = os.path.join(place, "runtime")
for path in (place, runtime):
    os.mkdir(path, 0o700)
    if user:
        shutil.chown(path, user, user)
state = os.path.join(place, "state")
env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": place, "LANG": "C.UTF-8", "PALE_STATE_DIR": state,
       "XDG_RUNTIME_DIR": runtime}
if os.path.exists(broker := os.path.join(os.path.dirname(pale), "..", "pale-egress")):
    env["PALE_EGRESS_PROGRAM"] = os.path.realpath(broker)  # of root, perhaps, who is nobody in this user namespace
env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})

# What runs inside: a line in, a line out.
AGENT = r'''
import http.client, json, socket, sys, urllib.request
held = {}

def attempt(what):
    try:
        return what()
    except OSError as e:
        return type(e).__name__

def connect(name, host, port):
    try:
        held[name] = socket.create_connection((host, port), 5)
        return "connected"
    except OSError as e:
        return type(e).__name__

def ping(name):
    try:
        held[name].settimeout(5)
        held[name].sendall(b"x")
        return "pong" if held[name].recv(16) == b"x" else "ended"
    except OSError as e:
        return type(e).__name__

def get(url):
    try:
        return urllib.request.urlopen(url, timeout=5).status
    except Exception as e:
        return getattr(e, "code", None) or type(getattr(e, "reason", e)).__name__

def unix(path):
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(path)
        return "connected"
    except OSError as e:
        return type(e).__name__

def download(name, host, path):
    """Begins one and reads a little of it."""
    s = held[name] = socket.create_connection((host, 80), 5)
    s.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    return len(s.recv(1000)) > 0

def rest(name):
    """How a download ends."""
    n = 0
    held[name].settimeout(5)
    try:
        while True:
            part = held[name].recv(1 << 20)
            if not part:
                return ["end", n]
            n += len(part)
    except OSError as e:
        return [type(e).__name__, n]

for line in sys.stdin:
    print(json.dumps(eval(line)), flush=True)
'''


class Box:
    def __init__(self, *flags):
        line = [*world.prefix, pale, "run", "--timeout", "60s", *flags, "--", "/usr/bin/python3", "-c", AGENT]
        self.p = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env=env, cwd=place)
        same("a box starts", self.ask("1 + 1"), 2)
        with open(sorted(glob.glob(state + "/runs/*/audit.jsonl"))[-1], encoding="utf-8") as f:
            self.id = json.loads(f.readline())["run"]
        self.door = os.readlink(f"{state}/runs/{self.id}/door")

    def ask(self, what):
        try:
            self.p.stdin.write(what + "\n")
            self.p.stdin.flush()
            line = self.p.stdout.readline()
        except OSError:
            line = ""
        return json.loads(line) if line else "the box is gone: " + self.p.stderr.read()

    def events(self, name=None):
        with open(f"{state}/runs/{self.id}/audit.jsonl", encoding="utf-8") as f:
            found = [json.loads(line) for line in f]
        return [e for e in found if name is None or e["event"] == name]

    def end(self):
        self.p.stdin.close()
        return self.p.wait(20)


def network(*words, **more):
    return world.run([pale, "network", *words], env=env, cwd=place, **more)


def front(box):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    s.connect(box.door + "/control")
    return s


def say(s, command, **arguments):
    s.sendall(json.dumps({"pale": 1, "command": command, "arguments": arguments}).encode() + b"\n")
    line = b""
    while not line.endswith(b"\n"):
        part = s.recv(65536)
        if not part:
            return {"error": {"code": "closed"}}
        line += part
    return json.loads(line)


@case
def changes():
    box = Box("--allow", "http://www.example.com")
    same("what is allowed works", box.ask("get('http://www.example.com/')"), 200)
    check("another host does not", box.ask("get('http://other.example.com/')") != 200)
    p = network("allow", "http://other.example.com", "tcp://echo.example.com:7", "tcp://93.184.216.10:80")
    same("allow", p.returncode, 0)
    check("says what it did", b"+ allow http other.example.com:80" in p.stdout and b"widened" in p.stdout, p.stdout + p.stderr)
    same("then it works at once", box.ask("get('http://other.example.com/')"), 200)
    same("a literal address, too", box.ask("connect('l', '93.184.216.10', 80)"), "connected")
    same("and raw TCP", box.ask("connect('e', 'echo.example.com', 7)"), "connected")
    same("which goes on", box.ask("ping('e')"), "pong")
    same("a download runs", box.ask("download('d', 'other.example.com', '/bytes/300000000')"), True)
    shown = json.loads(network("--json").stdout)
    same("show gives the rules", [r["text"] for r in shown["rules"]],
         ["allow http www.example.com:80", "allow http other.example.com:80", "allow tcp echo.example.com:7",
          "allow tcp 93.184.216.10 port 80"])
    check("with what they did", shown["rules"][1]["counters"]["connections"] + shown["rules"][1]["counters"]["requests"] >= 1, shown)
    begun = time.monotonic()
    p = network(box.id[:20], "deny", "other.example.com", "echo.example.com", "93.184.216.10")
    check("deny, by the beginning of the id", p.returncode == 0 and b"narrowed" in p.stdout, p.stdout + p.stderr)
    check("is quick", time.monotonic() - begun < 5)
    check("a running connection is ended", box.ask("ping('e')") in ("ended", "ConnectionResetError", "BrokenPipeError"))
    end = box.ask("rest('d')")
    check("a running download, too", end[1] < 300000000, end)
    check("a new one is refused", box.ask("get('http://other.example.com/')") != 200)
    check("and to the address", box.ask("connect('m', '93.184.216.10', 80)") != "connected")
    same("what was not named goes on", box.ask("get('http://www.example.com/')"), 200)
    same("remove", network("remove", "other.example.com", "4").returncode, 0)
    check("what is removed is not allowed", box.ask("get('http://other.example.com/')") != 200)
    p = network("remove", "other.example.com")
    check("nothing is there any more", p.returncode == 1 and b"no rule is covered" in p.stderr, p.stderr)
    changed = box.events("network.changed")
    same("all changes are in the log", [e["effect"] for e in changed], ["widened", "narrowed", "widened and narrowed"])
    check("with who, and what", all(e["uid"] == os.stat(state).st_uid and e["program"] == "pale" and e["pid"] > 0 for e in changed)
          and "deny other.example.com" in changed[1]["added"], changed)
    refused = [e for e in box.events() if e.get("rule") == "deny other.example.com"]
    check("events name the new rules", refused, [e for e in box.events() if e["event"].startswith("network.")][-5:])
    same("the box ends as it would have", box.end(), 0)
    check("and leaves nothing", not os.path.lexists(box.door) and not os.path.lexists(f"{state}/runs/{box.id}/door"))
    same("its log is whole", world.run([pale, "audit", "verify", box.id], env=env).returncode, 0)
    p = network(box.id, "show")
    check("it is not found any more", p.returncode == 125 and b"no box" in p.stderr, p.stderr)


@case
def refusals():
    box = Box("--allow", "www.example.com")
    for words, status, text in ((["allow", "GET www.example.com/x/**"], 1, b"certificate"), (["allow", "a b c d"], 2, b"policy"),
                                (["allow", "www.example.com:0"], 2, b"port"), (["allow"], 2, b"what?"), (["0", "frob"], 2, b"frob"),
                                (["frob"], 2, b"frob"), (["secret", "A@www.example.com"], 2, b"secret"),
                                (["allow", "preset:nothing-such"], 2, b"preset"), (["remove", "99"], 1, b"99"),
                                (["zzzzzz", "show"], 125, b"no box")):
        p = network(*words)
        check(f"refused: {' '.join(words)}", p.returncode == status and text in p.stderr, (p.returncode, p.stderr))
    p = network("allow", "preset:pypi")
    check("presets are allowed", p.returncode == 0 and b"pypi.org" in p.stdout, p.stderr)
    same("nothing of what was refused is in the log", len(box.events("network.changed")), 1)
    s = front(box)
    same("secrets are not", say(s, "network.change", secrets=["A@www.example.com"])["error"]["code"], "refused")
    s.close()
    other = Box("--allow", "www.example.com")
    p = network("show")
    check("with two boxes, one has to be named", p.returncode == 2 and box.id.encode() in p.stderr and other.id.encode() in p.stderr,
          p.stderr)
    same("by its id", network(other.id, "show").returncode, 0)
    network("last", "allow", "www.example.org")
    same("or as the newest", [len(b.events("network.changed")) for b in (box, other)], [1, 1])
    box.end()
    other.end()


@case
def looked_into():
    box = Box("--allow", "GET www.example.com/**")
    request = ("[held['h'].request('{0}', '{1}', 'x' if '{0}' == 'POST' else None), "
               "(lambda r: [r.status, r.read().decode()])(held['h'].getresponse())][1]")
    same("a request that is allowed", box.ask("[held.update(h=http.client.HTTPSConnection('www.example.com')), "
                                              + request.format("GET", "/a") + "][1][0]"), 200)
    same("and one that is not", box.ask(request.format("POST", "/a"))[0], 403)
    same("methods are allowed where TLS is looked into", network("allow", "POST www.example.com/**", "GET other.example.com/x/**").returncode, 0)
    same("then it works", box.ask(request.format("POST", "/a"))[0], 200)
    same("on another host, too", box.ask("get('https://other.example.com/x/1')"), 200)
    same("where that is allowed", box.ask("get('https://other.example.com/y')"), 403)
    same("a path is denied", network("deny", "--reason", "use /open instead", "www.example.com/secret/**").returncode, 0)
    answer = box.ask(request.format("GET", "/secret/1"))
    check("on a connection that is open, and the answer says so", answer[0] == 403 and "pale network" in answer[1]
          and "use /open instead" in answer[1], answer)
    same("which goes on", box.ask(request.format("GET", "/a"))[0], 200)
    shown = {r["text"]: r["counters"] for r in json.loads(network("--json").stdout)["rules"]}
    check("counters are by rule", shown["allow tls www.example.com:443 POST /**"]["requests"] == 1
          and shown["deny www.example.com /secret/**"]["blocked"] == 1, shown)
    box.end()


@case
def published():
    """A box that is only let in to has rules of its own, too: none; and what was let in stays."""
    box = Box("--publish", "7000")
    same("it listens", box.ask("held.update(s=socket.create_server(('127.0.0.1', 7000))) or 1"), 1)
    s = socket.create_connection(("127.0.0.1", box.events("network.published")[0]["ports"][0]["host_port"]), 10)
    same("it is connected to", box.ask("held.update(c=held['s'].accept()[0]) or 1"), 1)
    p = network()
    check("nothing is allowed", p.returncode == 0 and b"Nothing is allowed" in p.stdout, p.stdout + p.stderr)
    same("something is then", network("allow", "http://www.example.com").returncode, 0)
    same("which works", box.ask("get('http://www.example.com/')"), 200)
    same("and is not any more", network("remove", "1").returncode, 0)
    check("which works, too", box.ask("get('http://www.example.com/')") != 200)
    s.sendall(b"y")
    same("what came in goes on", box.ask("held['c'].recv(1).decode()"), "y")
    s.close()
    box.end()


@case
def datagrams():
    box = Box("--allow", "www.example.com")
    udp = ("(lambda s: [s.settimeout(2), s.sendto(b'x', socket.getaddrinfo('udp.example.com', 7, socket.AF_INET)[0][4]), "
           "s.recv(9).decode()][2])(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))")
    same("UDP is allowed", network("allow", "udp://udp.example.com:7").returncode, 0)
    same("then it works", box.ask(f"attempt(lambda: {udp})"), "x")
    same("it is denied", network("deny", "udp.example.com").returncode, 0)
    check("then it does not", box.ask(f"attempt(lambda: {udp})") != "x")
    box.end()


@case
def door():
    box = Box("--allow", "www.example.com", *(() if root else ("--ro", runtime)))
    same("its directory is the owner's alone", oct(os.stat(box.door).st_mode & 0o777), "0o700")
    check("where it belongs", box.door.startswith("/run/pale/" if root else runtime + "/pale/"), box.door)
    check("nothing of it is inside", box.ask(f"unix('{box.door}/control')") != "connected")
    for text in (b"\n", b"{}\n", b"[" * 100000 + b"\n", b"x" * 300000, b"\0\xff\n", b'{"pale":1,"command":"info","a":0}\n'):
        s = front(box)
        try:
            s.sendall(text)
            s.recv(65536)
        except OSError:
            pass
        s.close()
    # Somebody who never reads, somebody who never ends a line, and many at once.
    deaf, dumb = front(box), front(box)
    deaf.settimeout(0.2)
    try:
        while True:
            deaf.sendall(b'{"pale":1,"command":"network.show"}\n' * 500)
    except OSError:
        pass
    dumb.sendall(b'{"pale"')
    answers = []

    def one(n):
        s = front(box)
        for i in range(5):
            answers.append(say(s, "network.change", allow=[f"h{n}-{i}.example.com"]))
        s.close()

    threads = [threading.Thread(target=one, args=(n,)) for n in range(20)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    same("many fronts at once: each is answered", sum("result" in a for a in answers), 100)
    same("one after the other", sorted(a["result"]["revision"] for a in answers if "result" in a), list(range(2, 102)))
    same("all are in force", len(json.loads(network("--json").stdout)["rules"]), 101)
    same("and in the log", len(box.events("network.changed")), 100)
    same("and the box works on", box.ask("2 + 2"), 4)
    same("a change for another revision is refused", say(front(box), "network.change", allow=["x.example.com"], revision=5)["error"]["code"],
         "conflict")
    info = say(front(box), "info")["result"]
    check("info", info["id"] == box.id and info["command"][0] == "/usr/bin/python3" and info["supervisor_pid"] > 1
          and info["limits"]["wall_ms"] > 0 and info["usage"]["wall_ms"] > 0 and info["policy"], info)
    if os.geteuid() == 0 and user != "nobody":
        p = subprocess.run(["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups", "/usr/bin/python3", "-c",
                            f"import socket; socket.socket(socket.AF_UNIX).connect('{box.door}/control')"], capture_output=True)
        check("other users are refused", b"PermissionError" in p.stderr, p.stderr)
    else:
        skip("other users are refused", "needs root, and a user")
    box.end()


@case
def killed():
    box = Box("--allow", "www.example.com")
    pid = say(front(box), "info")["result"]["supervisor_pid"]
    check("the door is there", os.path.exists(box.door + "/control"))
    os.kill(pid, signal.SIGKILL)
    box.p.wait(20)
    world.run([pale, "audit", "list"], env={**env, "XDG_RUNTIME_DIR": "/nonexistent"})
    check("a killed supervisor leaves nothing", not os.path.lexists(box.door) and not os.path.lexists(f"{state}/runs/{box.id}/door"),
          box.door)
    same("and the log says so", [e["event"] for e in box.events()][-2:], ["box.lost", "box.end"])


def is_broker(pid, supervisor):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            words = f.read().rsplit(")", 1)
        return words[0].endswith("(pale-egress") and int(words[1].split()[1]) == supervisor
    except OSError:
        return False


@case
def broker_stands_still():
    """Nobody knows then which rules are in force: the box ends."""
    box = Box("--allow", "www.example.com")
    supervisor = say(front(box), "info")["result"]["supervisor_pid"]
    broker = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and is_broker(pid, supervisor)]
    same("there is a broker", len(broker), 1)
    os.kill(broker[0], signal.SIGSTOP)
    begun = time.monotonic()
    p = network("deny", "www.example.com")
    check("a change that it does not answer fails", p.returncode == 125 and b"did not answer" in p.stderr, p.stderr)
    check("after ten seconds", 9 < time.monotonic() - begun < 25, time.monotonic() - begun)
    box.p.wait(20)
    end = box.events("box.end")[-1]
    check("and the box has ended", end["outcome"] == "failed" and "did not answer" in end["error"], end)
    same("the change is in the log all the same", len(box.events("network.changed")), 1)
    check("and nothing is left", not os.path.lexists(box.door) and not os.path.exists(f"/proc/{broker[0]}/exe"))


@case
def traps():
    def refused(what, text, runtime_dir=runtime):
        p = world.run([pale, "run", "--allow", "www.example.com", "true"], env={**env, "XDG_RUNTIME_DIR": runtime_dir}, cwd=place)
        check(f"refused: {what}", p.returncode == 125 and text in p.stderr, (p.returncode, p.stderr))

    if root:
        skip("traps in the runtime directory", "root's is in /run, which is root's")
        return
    ours = runtime + "/pale"
    shutil.rmtree(ours, ignore_errors=True)
    os.symlink("/tmp", ours)
    refused("a symbolic link", b"symbolic link")
    os.unlink(ours)
    refused("another's directory", b"belongs to user", "/usr")
    p = world.run([pale, "run", "true"], env={**env, "XDG_RUNTIME_DIR": "/usr"}, cwd=place)
    same("a box without a network has no door", p.returncode, 0)
    p = world.run([pale, "run", "--allow", "www.example.com", "true"], env={**env, "XDG_RUNTIME_DIR": ""}, cwd=place)
    same("without XDG_RUNTIME_DIR it is in the state directory", p.returncode, 0)


done()
