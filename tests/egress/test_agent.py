"""The caller's ssh agent in a box: for logins at the hosts of network.ssh_agent, and nothing else. A real agent, ssh and git,
and a client that says what ssh never would.

usage: test_agent.py PALE [--user NAME]
"""
import atexit
import base64
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import standin
from tap import *

args = sys.argv[1:]
user = args[args.index("--user") + 1] if "--user" in args else None
pale = os.path.abspath(args[0])
PYTHON = "/usr/bin/python3"
try:
    world = standin.enter(user)
except standin.NotHere as e:
    skip("boxes in a test internet", str(e), "egress")
    done()

home = os.path.join(world.place, "caller")
os.makedirs(home + "/.ssh", mode=0o700)
state = os.path.join(home, "state")
env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": home, "LANG": "C.UTF-8", "PALE_STATE_DIR": state}
env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
if os.geteuid() != 0:
    # Of root, perhaps, who is nobody in this user namespace.
    env["PALE_EGRESS_PROGRAM"] = os.path.join(os.path.dirname(os.path.dirname(pale)), "pale-egress")


def own(path=home):
    if user:
        subprocess.run(["chown", "-R", user, path], check=True)


def start_agent(name):
    at = os.path.join(home, name)
    own()
    p = subprocess.Popen([*world.prefix, "ssh-agent", "-D", "-a", at], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    atexit.register(p.kill)
    for _ in range(2000):
        with socket.socket(socket.AF_UNIX) as s:  # its name is there before it listens
            if s.connect_ex(at) == 0:
                return p, at
        time.sleep(0.01)
    raise RuntimeError("ssh-agent does not come up")


agent, at = start_agent("agent")
env["SSH_AUTH_SOCK"] = at
shutil.copy(world.ssh_key, home + "/key")
os.chmod(home + "/key", 0o600)
own()
subprocess.run([*world.prefix, "ssh-add", "-q", home + "/key"], env=env, check=True)
listed = subprocess.run([*world.prefix, "ssh-add", "-l"], env=env, capture_output=True, text=True).stdout
KEY = listed.split()[1]
ME = world.ssh_user

# Host keys of every kind, whose private parts an agent of the test's own has, so that it can sign like a server.
hosts_agent, hosts_at = start_agent("hosts")
hostkeys = {}
for kind, bits in (("ed25519", 256), ("rsa", 2048), ("ecdsa", 256), ("ecdsa", 384), ("ecdsa", 521)):
    path = f"{home}/host-{kind}-{bits}"
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-b", str(bits), "-N", "", "-f", path], check=True)
    own()
    subprocess.run([*world.prefix, "ssh-add", "-q", path], env={**env, "SSH_AUTH_SOCK": hosts_at}, check=True)
    with open(path + ".pub") as f:
        hostkeys[f"{kind}-{bits}"] = f.read().split()[:2]


def known_hosts(*lines):
    with open(home + "/.ssh/known_hosts", "w") as f:
        f.write("".join(line + "\n" for line in lines))
    own()


with open(os.path.join(world.place, "ssh", "host.pub")) as f:
    REAL = " ".join(f.read().split()[:2])


def pack(*parts):
    return b"".join(struct.pack(">I", len(p)) + p if isinstance(p, bytes) else p for p in parts)


def raw(b):
    return bytearray(b)  # not a string: as it is


def join(*parts):
    return b"".join(bytes(p) if isinstance(p, bytearray) else struct.pack(">I", len(p)) + p for p in parts)


def sign_like_a_server(blob, data, flags=0):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(hosts_at)
        m = join(raw(b"\x0d"), blob, data, raw(struct.pack(">I", flags)))
        s.sendall(struct.pack(">I", len(m)) + m)
        head = s.recv(4, socket.MSG_WAITALL)
        answer = s.recv(struct.unpack(">I", head)[0], socket.MSG_WAITALL)
    assert answer[0] == 14, answer
    return answer[5:]


class Run:
    def __init__(self, *command, flags=(), hosts=("git.example.com",), allow=("git.example.com:22",), more=None):
        line = [*world.prefix, pale, "run", "--json", "--timeout", "60s", "--memory", "1GiB",
                *[x for a in allow for x in ("--allow", a)], *[x for h in hosts for x in ("--ssh-agent", h)], *flags, "--", *command]
        p = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, timeout=90, env={**env, **(more or {})}, cwd=home)
        self.status, self.said = p.returncode, p.stderr.decode(errors="replace")
        self.json = json.loads(p.stdout) if p.stdout.strip() else {}
        self.out, self.err = self.json.get("stdout", ""), self.json.get("stderr", "")
        self.events = []
        if "audit_id" in self.json:
            with open(os.path.join(state, "runs", self.json["audit_id"], "audit.jsonl")) as f:
                self.events = [json.loads(x) for x in f]

    def find(self, event, **want):
        return [e for e in self.events if e["event"] == event and all(e.get(k) == v for k, v in want.items())]

    def __str__(self):
        return f"{self.status} {self.said}\n{self.json}\n" + "\n".join(map(str, self.events[1:]))


@case
def ssh_and_git():
    known_hosts("git.example.com " + REAL)
    r = Run("ssh", "-o", "BatchMode=yes", f"{ME}@git.example.com", "echo", "in")
    same("ssh logs in with the caller's key", r.out, "in\n") or print("#", r)
    told = r.find("ssh.sign")
    same("an event says where, as whom, with which key", [(e["host"], e["user"], e["key"], e["outcome"]) for e in told],
         [("git.example.com", ME, KEY, "allowed")])
    check("and that keys were listed", r.find("ssh.agent", request="list", outcome="allowed"), r)
    same("nothing was blocked", r.json["blocked"], [])
    r = Run("git", "clone", "-q", f"ssh://{ME}@git.example.com{world.repositories}/project.git", "p")
    check("git clones", r.status == 0 and r.find("ssh.sign", outcome="allowed"), r)
    r = Run("sh", "-c", f"git clone -q ssh://{ME}@git.example.com{world.repositories}/project.git p && cd p && "
            "git -c user.name=x -c user.email=x@y commit -q --allow-empty -m x && git push -q origin HEAD:from-a-box 2>&1; echo $?")
    same("and pushes", r.out.strip()[-1:], "0") or print("#", r)
    same("each connection asks anew", len(r.find("ssh.sign", outcome="allowed")), 2)
    r = Run("ssh-add", "-L")
    key = open(home + "/key.pub").read().split()[1] if os.path.exists(home + "/key.pub") else \
        subprocess.run(["ssh-keygen", "-y", "-f", home + "/key"], capture_output=True, text=True).stdout.split()[1]
    check("the keys can be listed", key in r.out, r)
    check("without the caller's comments", "client" not in r.out, r.out)
    r = Run("sh", "-c", "ls -l $SSH_AUTH_SOCK; cat /etc/ssh/ssh_known_hosts; ls -a ~/.ssh")
    check("the socket is the box's user's", r.out.startswith("srw-------"), r.out)
    check("the box has the host's key, and nothing of the caller's directory", f"git.example.com {REAL}\n" in r.out and
          "cannot access" in r.err, r)


@case
def names_of_known_hosts():
    same_key = []
    for what, line in (("hashed", None), ("a list", "other,git.example.com,1.2.3.4 " + REAL), ("a wildcard", "*.example.com " + REAL)):
        if line:
            known_hosts(line)
        else:
            known_hosts("git.example.com " + REAL)
            subprocess.run(["ssh-keygen", "-q", "-H", "-f", home + "/.ssh/known_hosts"], capture_output=True)
            own()
            os.unlink(home + "/.ssh/known_hosts.old")
        r = Run("ssh", "-o", "BatchMode=yes", f"{ME}@git.example.com", "echo", "in")
        same(f"known_hosts: {what}", r.out, "in\n") or print("#", r)
    for what, lines in (("no line", ["other.example.com " + REAL]), ("negated", ["*.example.com,!git.example.com " + REAL]),
                        ("revoked", ["git.example.com " + REAL, "@revoked git.example.com " + REAL]),
                        ("only an authority", ["@cert-authority git.example.com " + REAL]), ("nonsense", ["git.example.com", "\x00 x", "#"]),
                        ("a zero byte", ["git.example.com " + REAL.replace(" ", "\0 ")])):
        known_hosts(*lines)
        r = Run("true")
        check(f"known_hosts: {what}: the run is refused", r.status == 125 and "known_hosts has no key of git.example.com" in r.said, r)
    os.unlink(home + "/.ssh/known_hosts")
    r = Run("true")
    check("no known_hosts: the run is refused", r.status == 125 and "known_hosts" in r.said, r)


@case
def another_host():
    # The caller knows both; the policy names the one, and the code connects to the other.
    known_hosts("api.github.com " + " ".join(hostkeys["ed25519-256"]), "git.example.com " + REAL)
    r = Run("ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR", f"{ME}@git.example.com", "echo", "in",
            hosts=["api.github.com"], allow=["git.example.com:22", "tcp://api.github.com:22"])
    check("a host that is allowed, but not to the agent: no login", "in" not in r.out and r.status == 255, r)
    told = r.find("ssh.sign", outcome="refused")
    check("the refusal is told", told and "not one that known_hosts has" in told[0]["detail"] and told[0]["key"] == KEY, r)
    check("and in the result", any(b["kind"] == "ssh_agent" and b["request"] == "sign" for b in r.json["blocked"]), r.json["blocked"])
    r = Run("ssh", "-o", "BatchMode=yes", "-A", f"{ME}@git.example.com", "ssh-add -l; echo done", hosts=["git.example.com"])
    known_hosts("git.example.com " + REAL)
    r = Run("ssh", "-o", "BatchMode=yes", "-A", f"{ME}@git.example.com", "SSH_AUTH_SOCK=$SSH_AUTH_SOCK ssh-add -D 2>&1; echo done")
    check("forwarded to the host: it can remove no key", "done" in r.out and "removed" not in r.out, r)
    same("the keys are still there", subprocess.run([*world.prefix, "ssh-add", "-l"], env=env, capture_output=True, text=True).stdout, listed)


@case
def no_agent():
    known_hosts("git.example.com " + REAL)
    r = Run("true", more={"SSH_AUTH_SOCK": ""})
    check("SSH_AUTH_SOCK is empty", r.status == 125 and "SSH_AUTH_SOCK" in r.said, r)
    r = Run("true", more={"SSH_AUTH_SOCK": home + "/nothing"})
    check("nobody is there", r.status == 125 and "cannot connect to the ssh agent" in r.said, r)
    r = Run("true", allow=["git.example.com:443"])
    check("a host that ssh cannot reach", r.status == 125 and "no rule of network.allow lets ssh reach" in r.said, r)
    r = Run("sh", "-c", "echo ${SSH_AUTH_SOCK-unset}; ls /dev/ssh-agent /etc/ssh/ssh_known_hosts", hosts=[])
    check("without ssh_agent there is nothing of it", r.out == "unset\n" and r.err.count("No such file") == 2, r)


# A client inside: messages in hex, one connection each list; prints the types of the answers, and of the last the hex.
CLIENT = """
import json, os, socket, struct, sys
for connection in json.loads(sys.argv[1]):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(10)
    s.connect(os.environ['SSH_AUTH_SOCK'])
    said = []
    for m in connection:
        m = b'\\x0b' * m if isinstance(m, int) else bytes.fromhex(m)
        try:
            s.sendall(struct.pack('>I', len(m)) + m)
            head = s.recv(4, socket.MSG_WAITALL)
            if len(head) < 4:
                said.append('end')
                break
            a = s.recv(struct.unpack('>I', head)[0], socket.MSG_WAITALL)
            said.append(a[0])
        except (BrokenPipeError, ConnectionResetError):
            said.append('end')
            break
    s.close()
    print(json.dumps(said))
"""
FAILURE, SUCCESS, SIGNED = 5, 6, 14


def ask(*connections, hosts=("git.example.com",)):
    r = Run(PYTHON, "-c", CLIENT, json.dumps([[m if isinstance(m, int) else bytes(m).hex() for m in c] for c in connections]), hosts=hosts)
    try:
        return [json.loads(x) for x in r.out.splitlines()], r
    except ValueError:
        return [], r


def blob(name):
    return base64.b64decode(hostkeys[name][1])


SESSION, OTHER = bytes(range(32)), bytes(range(1, 33))
mine = base64.b64decode(subprocess.run(["ssh-keygen", "-y", "-f", home + "/key"], capture_output=True, text=True).stdout.split()[1])


def bind(name="ed25519-256", session=SESSION, signed=None, forwarding=0, flags=0, key=None, signature=None):
    signature = signature or sign_like_a_server(blob(name), signed or session, flags)
    return join(raw(b"\x1b"), b"session-bind@openssh.com", key or blob(name), session, signature, raw(bytes([forwarding])))


def login(session=SESSION, kind=50, service=b"ssh-connection", method=b"publickey", has=1, key=None, hostkey=None, tail=b"", who=b"me"):
    return join(session, raw(bytes([kind])), who, service, method, raw(bytes([has])), b"ssh-ed25519", key or mine,
                *([hostkey] if hostkey else []), raw(tail))


def sign(data, key=None):
    return join(raw(b"\x0d"), key or mine, data, raw(struct.pack(">I", 0)))


@case
def every_kind_of_host_key():
    known_hosts(*[f"git.example.com {t} {b}" for t, b in hostkeys.values()])
    tries = [("ed25519-256", 0), ("ecdsa-256", 0), ("ecdsa-384", 0), ("ecdsa-521", 0), ("rsa-2048", 2), ("rsa-2048", 4)]
    got, r = ask(*[[bind(name, flags=flags), sign(login())] for name, flags in tries],
                 *[[bind(name, flags=flags, signed=OTHER), sign(login())] for name, flags in tries])
    for i, (name, flags) in enumerate(tries):
        same(f"{name}, flags {flags}: what the key signed", got[i:i + 1], [[SUCCESS, SIGNED]]) or print("#", r)
        same(f"{name}, flags {flags}: another session's signature", got[i + 6:i + 7], [[FAILURE, FAILURE]])
    got, r = ask([bind("rsa-2048"), sign(login())])
    same("an RSA key with SHA-1 proves nothing", got, [[FAILURE, FAILURE]]) or print("#", r)


@case
def what_may_be_signed():
    known_hosts("git.example.com " + " ".join(hostkeys["ed25519-256"]), "other.example.com " + " ".join(hostkeys["ecdsa-256"]))
    hostbound = b"publickey-hostbound-v00@openssh.com"
    tries = [
        ("a login", [bind(), sign(login())], [SUCCESS, SIGNED], None),
        ("a login that names its server", [bind(), sign(login(method=hostbound, hostkey=blob("ed25519-256")))], [SUCCESS, SIGNED], None),
        ("bound twice to the same", [bind(), bind(), sign(login())], [SUCCESS, SUCCESS, SIGNED], None),
        ("not bound", [sign(login())], [FAILURE], "did not say for which session"),
        ("another session", [bind(), sign(login(session=OTHER))], [SUCCESS, FAILURE], "another session than the one"),
        ("another server", [bind(), sign(login(method=hostbound, hostkey=blob("ecdsa-256")))], [SUCCESS, FAILURE], "another server"),
        ("a bind replayed with another session", [bind(session=OTHER, signed=SESSION), sign(login(session=OTHER))], [FAILURE, FAILURE],
         "did not sign this session"),
        ("bound to a host that is not named", [bind("ecdsa-256"), sign(login())], [FAILURE, FAILURE], "not one that known_hosts has"),
        ("first well, then to another", [bind(), bind("ecdsa-256"), sign(login())], [SUCCESS, FAILURE, FAILURE], "not one that known"),
        ("first well, then another session", [bind(), bind(session=OTHER), sign(login(session=OTHER))], [SUCCESS, FAILURE, FAILURE],
         "bound to another session before"),
        ("forwarded", [bind(forwarding=1), sign(login())], [FAILURE, FAILURE], "may not be forwarded"),
        ("another key's signature", [bind(signature=sign_like_a_server(blob("ecdsa-256"), SESSION)), sign(login())], [FAILURE, FAILURE],
         "did not sign"),
        ("a commit (SSHSIG)", [bind(), sign(b"SSHSIG" + join(b"git", b"", b"sha512", bytes(64)))], [SUCCESS, FAILURE], "no login"),
        ("any bytes", [bind(), sign(b"x" * 1000)], [SUCCESS, FAILURE], "no login"),
        ("nothing", [bind(), sign(b"")], [SUCCESS, FAILURE], "no login"),
        ("another message than a login", [bind(), sign(login(kind=51))], [SUCCESS, FAILURE], "no login"),
        ("another service", [bind(), sign(login(service=b"ssh-userauth"))], [SUCCESS, FAILURE], "no login"),
        ("another method", [bind(), sign(login(method=b"hostbased"))], [SUCCESS, FAILURE], "no login"),
        ("without its signature flag", [bind(), sign(login(has=0))], [SUCCESS, FAILURE], "no login"),
        ("for another key than the one that signs", [bind(), sign(login(key=blob("ed25519-256")))], [SUCCESS, FAILURE], "no login"),
        ("with more behind", [bind(), sign(login(tail=b"x"))], [SUCCESS, FAILURE], "no login"),
        ("the session's identifier is too short", [bind(session=b"x" * 8), sign(login(session=b"x" * 8))], [FAILURE, FAILURE], "malformed"),
        ("a key that the agent has not", [bind(), sign(login(key=blob("ed25519-256")), key=blob("ed25519-256"))], [SUCCESS, FAILURE],
         "the caller's agent refused"),
    ]
    # What is refused below is not refused by the agent itself.
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(at)
        m = sign(b"x" * 1000)
        s.sendall(struct.pack(">I", len(m)) + m)
        same("the agent would sign anything", s.recv(5, socket.MSG_WAITALL)[4], SIGNED)
    got, r = ask(*[t[1] for t in tries])
    events = iter(r.find("ssh.sign"))
    for i, (what, _, want, why) in enumerate(tries):
        same(what, got[i] if i < len(got) else r, want)
        e = next(events, {})
        check("... and it is told", (e.get("outcome") == "allowed") if why is None else why in e.get("detail", ""), e)


@case
def nothing_else():
    known_hosts("git.example.com " + " ".join(hostkeys["ed25519-256"]))
    with open(home + "/key", "rb") as f:
        private = f.read()
    names = {1: "unknown", 17: "add-identity", 18: "remove-identity", 19: "remove-all", 20: "add-smartcard", 21: "remove-smartcard",
             22: "lock", 23: "unlock", 25: "add-constrained", 26: "add-smartcard", 99: "unknown", 14: "unknown", 0: "unknown", 255: "unknown"}
    messages = {t: join(raw(bytes([t])), mine if t == 18 else b"secret", private[:100]) for t in names}
    got, r = ask(*[[bind(), m] for m in messages.values()], [bytes([19])], [bytes([11]) + b"x"], [bytes([27])],
                 [join(raw(b"\x1b"), b"query")], [join(raw(b"\x1b"), b"session-bind@openssh.com")], [bytes([13])], [b""],
                 [100000], [300000])
    same("everything else fails", got, [[SUCCESS, FAILURE]] * len(names) + [[FAILURE]] * 6 + [["end"]] + [[FAILURE]] + [["end"]]) or print("#", r)
    told = {(e["request"], e["outcome"]) for e in r.find("ssh.agent")}
    check("and is told by its name", {(n, "refused") for n in names.values()} <= told, told)
    same("the agent is as it was", subprocess.run([*world.prefix, "ssh-add", "-l"], env=env, capture_output=True, text=True).stdout, listed)
    flood = """
import os, socket, struct, threading, time
socks = []
for i in range(40):
    s = socket.socket(socket.AF_UNIX); s.setblocking(False)
    try:
        s.connect(os.environ['SSH_AUTH_SOCK'])
    except OSError:
        continue
    socks.append(s)
end = time.monotonic() + 1
while time.monotonic() < end:
    for s in socks:
        try:
            s.send(struct.pack('>IB', 1, 11) * 1000)
        except OSError:
            pass
for s in socks:
    s.close()
time.sleep(.3)
s = socket.socket(socket.AF_UNIX)
s.settimeout(20)
s.connect(os.environ['SSH_AUTH_SOCK'])
s.sendall(struct.pack('>IB', 1, 11))
print(s.recv(5)[4])
"""
    r = Run(PYTHON, "-c", flood)
    same("many clients that never read: the next one is answered", r.out, "12\n") or print("#", r)


@case
def the_agent_goes():
    known_hosts("git.example.com " + " ".join(hostkeys["ed25519-256"]))
    slow, slow_at = start_agent("slow")
    subprocess.run([*world.prefix, "ssh-add", "-q", home + "/key"], env={**env, "SSH_AUTH_SOCK": slow_at}, check=True)
    code = CLIENT.replace("for connection", "import time\nprint('up', flush=True)\ntime.sleep(1.5)\nfor connection")
    line = [*world.prefix, pale, "run", "--allow", "git.example.com:22", "--ssh-agent", "git.example.com", "--", PYTHON, "-c", code,
            json.dumps([[b"\x0b".hex()], [bind().hex(), sign(login()).hex()]])]
    p = subprocess.Popen(line, env={**env, "SSH_AUTH_SOCK": slow_at}, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    p.stdout.readline()
    slow.kill()
    slow.wait()
    out, err = p.communicate(timeout=30)
    same("an agent that is gone fails, at once", out.splitlines(), ["[5]", "[6, 5]"])
    same("and the box goes on", p.returncode, 0)


done()
