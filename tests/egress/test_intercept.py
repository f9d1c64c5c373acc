"""TLS that is opened: every client trusts it without doing anything, each request is checked by method and path, and
what HTTP can do goes through. usage: see boxed.py"""
import hashlib

from boxed import *
from table import CLIENTS, present

MAY = {"host": "api.example.com", "port": 443, "methods": ["GET", "HEAD"], "paths": ["/v1/**", "/bytes/*", "/stream/*", "/headers", "/status/*"]}
OPEN = {"host": "www.example.com", "port": 443, "intercept": True}
WHY = "ask for write access"
MODEL = network([MAY, OPEN, {"host": "ws.example.com", "port": 443, "intercept": True},
                 {"host": "h1only.example.com", "port": 443, "intercept": True}, {"host": "v6only.example.com", "port": 443, "intercept": True},
                 *[{"host": f"{n}.example.com", "port": 443, "intercept": True} for n in ("expired", "selfsigned", "wrongname")],
                 {"host": "mtls.example.com", "port": 443}, {"host": "pinned.example.com", "port": 443},
                 {"host": "grpc.example.com", "port": 50051, "protocol": "tls", "intercept": True}],
                [{"host": "api.example.com", "methods": ["DELETE"], "reason": WHY}], exempt=["mtls.example.com", "pinned.example.com"])
HELLO = "hello from "
clients = [c for c in CLIENTS if present(c)]


@case
def each_client():
    """No variable is set here but by the box itself, no store given."""
    urls = {"https://api.example.com/v1/x": ("GET", True), "https://v6only.example.com/": ("GET", True), "https://h1only.example.com/": ("GET", True),
            "https://api.example.com/v1/x?1": ("POST", False), "https://api.example.com/v1/x?2": ("DELETE", False), "https://api.example.com/admin": ("GET", False)}
    cases = [{"name": f"{c} {m} {u}", "argv": CLIENTS[c][2](u, m)} for c in clients for u, (m, _) in urls.items()
             if not (c == "curl -4" and "v6only" in u)]
    world.clear()
    r = inside(MODEL, cases)
    for c in clients:
        for u, (m, ok) in urls.items():
            got = r.cases.get(f"{c} {m} {u}")
            if not got:
                continue
            if ok:
                check(f"opened: {c}, {u}", got["status"] == 0 and HELLO in got["out"], got)
            else:
                text = got["out"] + got["err"]
                check(f"opened: {c}, {m} {u}: refused", got["status"] != 0 and HELLO not in text, got)
                check(f"opened: {c}, {m} {u}: in words", "Pale" in text and (m != "DELETE" or WHY in text), got)
    seen = world.seen("request", host="api.example.com")
    same("opened: only what is allowed arrived", sorted({(e["method"], e["path"]) for e in seen}), [("GET", "/v1/x")])
    for m, path in (("POST", "/v1/x"), ("DELETE", "/v1/x"), ("GET", "/admin")):
        found = r.find(host="api.example.com", method=m, path=lambda p: p and p.startswith(path))
        check(f"opened: {m} {path} is in `blocked`, with each program", len({os.path.basename(e.get("program", "")) for e in found}) >= 3, found)
        same(f"opened: {m} {path}: counted exactly", sum(e["count"] for e in found), len(clients))
    check("opened: the reason, too", any(e.get("reason") == WHY for e in r.find(host="api.example.com", method="DELETE")), r.find(method="DELETE"))
    check("opened: each request is in the log", r.find(blocked=False, host="api.example.com", method="GET", path="/v1/x"), r.text[-1000:])
    check("opened: HTTP/2 where both sides have it", any(e["version"] == "HTTP/2" for e in seen), seen[:3])
    verified("opened", r)


@case
def what_http_can_do():
    raw = "import os,socket,ssl,sys,time\nc=ssl.create_default_context()\ns=c.wrap_socket(socket.create_connection(('www.example.com',443)),server_hostname='www.example.com')\n"
    cases = {
        "large": "curl -sS https://www.example.com/bytes/30000000 | sha256sum",
        "large, HTTP/1": "curl -sS --http1.1 https://www.example.com/bytes/30000000 | sha256sum",
        "upload": "head -c 20000000 /dev/zero | curl -sS -T - https://www.example.com/echo | sha256sum",
        "upload, HTTP/1": "head -c 20000000 /dev/zero | curl -sS --http1.1 -T - https://www.example.com/echo | sha256sum",
        # Whether both sides of the broker come to stand still is a matter of luck.
        "many uploads": "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do head -c 5000000 /dev/zero | curl -sS -m 8 --http1.1 -T - https://www.example.com/echo | wc -c; done | sort -u",
        "streamed": "curl -sS https://www.example.com/stream/100 | tail -1",
        "expect": "head -c 100000 /dev/zero > /tmp/b; curl -sS --http1.1 -H 'Expect: 100-continue' --data-binary @/tmp/b https://www.example.com/echo | wc -c",
        "many at once": "curl -sS --parallel --parallel-max 20 " + " ".join(f"https://www.example.com/x{i}" for i in range(50)) + " | grep -c hello",
        "many, HTTP/1": "curl -sS --http1.1 --parallel --parallel-max 20 " + " ".join(f"https://www.example.com/x{i}" for i in range(50)) + " | grep -c hello",
        "one after the other": "curl -sS " + " ".join(f"https://www.example.com/y{i}" for i in range(50)) + " | grep -c hello",
        "head": "curl -sSI https://www.example.com/ | head -1",
        "status": "curl -sS -o /dev/null -w '%{http_code}' https://www.example.com/status/404",
        "empty": "curl -sS -o /dev/null -w '%{http_code} %{size_download}' https://www.example.com/bytes/0",
        "redirect": "curl -sSL 'https://www.example.com/redirect?to=https://api.example.com/v1/r'",
        "redirect to a refused": "curl -sSL -m 5 'https://www.example.com/redirect?to=https://evil.example.net/'",
        "trailers": [PYTHON, "-c", raw + "s.sendall(b'POST /trailers HTTP/1.1\\r\\nHost: www.example.com\\r\\nTransfer-Encoding: chunked\\r\\nTrailer: X-T\\r\\nConnection: close\\r\\n\\r\\n3\\r\\nabc\\r\\n0\\r\\nX-T: yes\\r\\n\\r\\n')\nd=b''\n"
                     "while p:=s.recv(9999): d+=p\nprint(d.decode())"],
        "request in pieces": [PYTHON, "-c", raw + "for b in b'GET /pieces HTTP/1.1\\r\\nHost: www.example.com\\r\\nConnection: close\\r\\n\\r\\n': s.sendall(bytes([b]))\nprint(s.recv(9999).decode())"],
        "websocket": [PYTHON, "-c", "import asyncio,websockets\nasync def f():\n async with websockets.connect('wss://ws.example.com/chat') as w:\n  await w.send('over'); print(await w.recv())\n"
                      "  await w.send('x'*70000); print(len(await w.recv()))\nasyncio.run(f())"],
        "grpc": [PYTHON, "-c", "import grpc,os\nc=grpc.secure_channel('grpc.example.com:50051',grpc.ssl_channel_credentials(open(os.environ.get('SSL_CERT_FILE','/etc/ssl/certs/ca-certificates.crt'),'rb').read()))\n"
                 "print(c.unary_unary('/standin.Echo/One')(b'abc',timeout=8).decode())\nprint(b''.join(c.stream_stream('/standin.Echo/Many')(iter([b'12',b'34']),timeout=8)).decode())"],
        "git": "git ls-remote https://www.example.com/project.git 2>&1 | tail -1",
        "nghttp": "nghttp -nv https://www.example.com/n 2>&1 | grep -c ':status: 200'",
    }
    world.ask("grpc")
    r = inside(MODEL, [{"name": n, "argv": c if isinstance(c, list) else ["sh", "-c", c], "timeout": 60} for n, c in cases.items()])
    c = r.cases
    digest = hashlib.sha256(b"x" * 30000000).hexdigest()
    zeros = hashlib.sha256(bytes(20000000)).hexdigest()
    for n, want in {"large": digest, "large, HTTP/1": digest, "upload": zeros, "upload, HTTP/1": zeros, "many uploads": "5000000", "streamed": "line 99", "expect": "100000",
                    "many at once": "50", "many, HTTP/1": "50", "one after the other": "50", "head": "HTTP/2 200", "status": "404", "empty": "200 0"}.items():
        check(f"opened: {n}", c[n]["out"].split("  ")[0].strip() == want, c[n])
    check("opened: a redirect", "hello from api" in c["redirect"]["out"], c["redirect"])
    check("opened: a redirect to what is refused", c["redirect to a refused"]["status"] != 0, c["redirect to a refused"])
    check("opened: trailers", '"X-T", "yes"' in c["trailers"]["out"], c["trailers"])
    check("opened: a request byte by byte", "hello from www" in c["request in pieces"]["out"], c["request in pieces"])
    same("opened: WebSocket", c["websocket"]["out"], "over\n70000\n")
    same("opened: gRPC, with a stream", c["grpc"]["out"], "cba\n2143\n")
    if shutil.which("nghttp", path=PATH):
        same("opened: nghttp", c["nghttp"]["out"].strip(), "1")


@case
def certificates():
    """Pale verifies upstream as the program would have."""
    cases = [{"name": n, "argv": ["curl", "-sS", "-m", "8", f"https://{n}.example.com/"]} for n in ("expired", "selfsigned", "wrongname", "mtls", "pinned")]
    cases += [{"name": "insecure", "argv": ["curl", "-ksS", "-m", "8", "https://selfsigned.example.com/"]},
              {"name": "who signed", "argv": ["sh", "-c", "for h in www pinned; do echo | openssl s_client -connect $h.example.com:443 -servername $h.example.com 2>/dev/null | openssl x509 -noout -issuer; done"]},
              {"name": "key", "argv": ["sh", "-c", "echo | openssl s_client -connect www.example.com:443 -servername www.example.com 2>/dev/null | openssl x509 -noout -text"]},
              {"name": "bundle", "argv": ["sh", "-c", "grep -c BEGIN /etc/ssl/certs/ca-certificates.crt; env | grep -iE 'cert|ca_|cainfo'"]},
              {"name": "key files", "argv": ["sh", "-c", "grep -rlE -- '-----BEGIN ([A-Z]+ )?PRIVATE KEY-----' /etc /tmp /home /run 2>/dev/null | head"]}]
    r = inside(MODEL, cases)
    for n, word in (("expired", "expired"), ("selfsigned", "sign"), ("wrongname", "match")):
        got = r.cases[n]
        check(f"a server whose certificate is bad: {n}: refused", HELLO not in got["out"], got)
        check(f"{n}: the reason is told, to the program or in the log", word in (got["out"] + got["err"]).lower() or r.find(host=f"{n}.example.com", detail=lambda d: d and word in d.lower()) or
              r.find(blocked=False, host=f"{n}.example.com", detail=lambda d: d and word in d.lower()), f"{got}\n{r.text[-1500:]}")
    check("also if the program does not care", HELLO not in r.cases["insecure"]["out"], r.cases["insecure"])
    check("an exempted host is not opened", "hello from pinned" in r.cases["pinned"]["out"], r.cases["pinned"])
    issuers = r.cases["who signed"]["out"].splitlines()
    check("only opened ones have the box's certificate", len(issuers) == 2 and "Pale" in issuers[0] and "Test internet" in issuers[1], issuers)
    check("its key is on P-256", "prime256v1" in r.cases["key"]["out"], r.cases["key"])
    same("no private key is in the box", r.cases["key files"]["out"], "")
    r = Run(network([{"host": "www.example.com", "port": 443}]), "sh", "-c", "env | grep -iE 'cert|cainfo|_CA_'; cat /etc/ssl/certs/ca-certificates.crt")
    with open(world.ca) as f:
        same("without interception nothing about trust is changed", r.out, f.read())
    r2 = inside(MODEL, [cases[6]])
    r3 = inside(MODEL, [cases[6]])
    check("each box has an authority of its own", r2.cases["who signed"]["out"] and True, r3.cases)


@case
def promises():
    p = world.run([pale, "explain", "-p", policy(MODEL)], env=env)
    text = p.stdout.decode()
    check("the plan says that TLS is opened, and for whom it is not", "mtls.example.com" in text and "api.example.com" in text, text[-3000:])


nothing_left()
done()
