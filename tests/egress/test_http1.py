"""HTTP/1.1 through the engine, in clear and through opened TLS. usage: test_http1.py HTTP-DOOR"""
import asyncio
import hashlib
import json
import socket
import ssl
import sys
import threading
import time

import warnings

import tap
import upstream
from door import NAME, Door, Place, read_all, read_answer
from tap import case, check, same

POLICY = """
pale: 1
network:
  allow:
  - {host: api.example.com, protocol: tls, intercept: true, methods: [GET, HEAD, POST, PUT, OPTIONS], paths: ["/**"]}
  - {host: api.example.com, protocol: tls, ports: [444, 8443], intercept: true}
  - {host: api.example.com, protocol: http, port: 80}
  - {host: other.example.com, protocol: http, port: 80}
  deny:
  - {host: api.example.com, paths: ["/private/**"], reason: "use the mirror"}
"""

warnings.simplefilter("ignore")  # an old TLS version is tried on purpose
place = Place()
clear = upstream.serve()
tls = upstream.serve(place.good)
tls12 = upstream.serve(place.good, version=ssl.TLSVersion.TLSv1_2)
bad = {name: upstream.serve(getattr(place, name)) for name in ("expired", "other", "stranger")}
door = Door(sys.argv[1], POLICY, {
    "clear": ("http", NAME, 80, clear.port),
    "tls": ("tls", NAME, 443, tls.port),
    "nobody": ("tls", NAME, 443, 1),
    "proxy": ("forward", "-", 80, 1),
    "-other": ("http", "other.example.com", 80, clear.port),
    "-api": ("http", NAME, 80, clear.port),
    **{name: ("tls", NAME, 443, server.port) for name, server in bad.items()},
}, place=place)


def ask(text, name="clear", alpn=None, all=False):
    with door.connect(name, alpn) as s:
        s.sendall(text.replace("\n", "\r\n").encode("latin-1"))
        return read_all(s) if all else read_answer(s)


def get(path, name="clear", alpn=None, **headers):
    extra = "".join(f"{k.replace('_', '-')}: {v}\n" for k, v in headers.items())
    return ask(f"GET {path} HTTP/1.1\nHost: {NAME}\n{extra}\n", name, alpn)


@case
def plain_requests():
    for name, alpn in (("clear", None), ("tls", ["http/1.1"]), ("tls", []), ("tls", ["h2", "http/1.1"])):
        status, headers, body = get("/echo?a=b", name, alpn, X_Own="1")
        check(f"{name} {alpn}: an ordinary request", status == 200, body)
        got = json.loads(body)
        same(f"{name} {alpn}: arrives as it was sent", (got["method"], got["path"], dict(got["headers"])["X-Own"]),
             ("GET", "/echo?a=b", "1"))
        e = door.event(path="/echo?a=b")
        same(f"{name} {alpn}: is told", (e["outcome"], e["status"], e["path"], e["address"]),
             ("allowed", 200, "/echo?a=b", "127.0.0.1"))
    with door.connect("tls", ["h2", "http/1.1"]) as s:
        same("a server without HTTP/2 is mirrored in ALPN", s.selected_alpn_protocol(), "http/1.1")
    with door.connect("tls", []) as s:
        subject = dict(x[0] for x in s.getpeercert()["subject"])
        same("the certificate names the host, and Pale", (subject["commonName"], subject["organizationName"]),
             (NAME, "Pale"))


@case
def a_kept_connection():
    with door.connect("clear") as s:
        for i in range(3):
            s.sendall(f"POST /echo HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: 3\r\n\r\nabc".encode())
            status, _, body = read_answer(s)
            same(f"request {i} on a kept connection", (status, json.loads(body)["length"]), (200, 3))
        s.sendall(f"GET /private/x HTTP/1.1\r\nHost: {NAME}\r\nAccept: application/json\r\n\r\n".encode())
        status, headers, body = read_answer(s)
        same("a denied path on a kept connection", (status, headers["x-pale-blocked"]), (403, "policy"))
        same("the refusal says the rule's reason", json.loads(body)["reason"], "use the mirror")
        s.sendall(b"GET /echo HTTP/1.1\r\nHost: other.example.com\r\n\r\n")
        same("another Host on a kept connection", read_answer(s)[0], 421)
        s.sendall(f"GET /echo HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
        same("and it is usable still", read_answer(s)[0], 200)
        s.sendall(f"GET /a HTTP/1.1\r\nHost: {NAME}\r\n\r\nGET /private/b HTTP/1.1\r\nHost: {NAME}\r\n\r\n"
                  f"GET /c HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n".encode())
        data = read_all(s)
        same("pipelined requests are checked each", data.count(b"HTTP/1.1 200"), 2)
        same("the denied one among them is refused", data.count(b"HTTP/1.1 403"), 1)


SMUGGLED = {
    "Content-Length and Transfer-Encoding": "POST /echo HTTP/1.1\nHost: {h}\nContent-Length: 4\nTransfer-Encoding: chunked\n\n0\n\n",
    "two Content-Length": "POST /echo HTTP/1.1\nHost: {h}\nContent-Length: 4\nContent-Length: 4\n\nabcd",
    "a list as Content-Length": "POST /echo HTTP/1.1\nHost: {h}\nContent-Length: 4, 4\n\nabcd",
    "a signed Content-Length": "POST /echo HTTP/1.1\nHost: {h}\nContent-Length: +4\n\nabcd",
    "two codings": "POST /echo HTTP/1.1\nHost: {h}\nTransfer-Encoding: chunked, identity\n\n0\n\n",
    "a coding with a blank within": "POST /echo HTTP/1.1\nHost: {h}\nTransfer-Encoding: chunked\x0b\n\n0\n\n",
    "two Transfer-Encoding": "POST /echo HTTP/1.1\nHost: {h}\nTransfer-Encoding: chunked\nTransfer-Encoding: x\n\n0\n\n",
    "a coding in HTTP/1.0": "POST /echo HTTP/1.0\nHost: {h}\nTransfer-Encoding: chunked\n\n0\n\n",
    "a blank before the colon": "POST /echo HTTP/1.1\nHost: {h}\nContent-Length : 4\n\nabcd",
    "a folded line": "GET /echo HTTP/1.1\nHost: {h}\nX: a\n b\n\n",
    "a chunk extension": "POST /echo HTTP/1.1\nHost: {h}\nTransfer-Encoding: chunked\n\n1;x=y\na\n0\n\n",
    "a broken chunk size": "POST /echo HTTP/1.1\nHost: {h}\nTransfer-Encoding: chunked\n\n0x1\na\n0\n\n",
    "too large a chunk size": "POST /echo HTTP/1.1\nHost: {h}\nTransfer-Encoding: chunked\n\nfffffffffffffffff\na\n0\n\n",
    "two Host": "GET /echo HTTP/1.1\nHost: {h}\nHost: evil.example.net\n\n",
    "no Host": "GET /echo HTTP/1.1\n\n",
    "Host with a user": "GET /echo HTTP/1.1\nHost: evil@{h}\n\n",
    "Host with a NUL": "GET /echo HTTP/1.1\nHost: {h}\0.evil.example.net\n\n",
    "another port in Host": "GET /echo HTTP/1.1\nHost: {h}:8080\n\n",
    "a URL of another host": "GET http://evil.example.net/echo HTTP/1.1\nHost: {h}\n\n",
    "a URL of another host and Host of that": "GET http://evil.example.net/echo HTTP/1.1\nHost: evil.example.net\n\n",
    "a URL with another scheme": "GET https://{h}/echo HTTP/1.1\nHost: {h}\n\n",
    "CONNECT within": "CONNECT {h}:443 HTTP/1.1\nHost: {h}\n\n",
    "CONNECT elsewhere": "CONNECT evil.example.net:443 HTTP/1.1\nHost: evil.example.net:443\n\n",
    "HTTP/2.0 in a line": "GET /echo HTTP/2.0\nHost: {h}\n\n",
    "a target with a blank": "GET /echo x HTTP/1.1\nHost: {h}\n\n",
    "a dot segment": "GET /a/../private/x HTTP/1.1\nHost: {h}\n\n",
    "an encoded dot segment": "GET /a/%2e%2e/private/x HTTP/1.1\nHost: {h}\n\n",
    "an encoded slash": "GET /a%2fb HTTP/1.1\nHost: {h}\n\n",
    "a double slash": "GET //private/x HTTP/1.1\nHost: {h}\n\n",
    "another method in a header": "POST /echo HTTP/1.1\nHost: {h}\nX-HTTP-Method-Override: DELETE\nContent-Length: 0\n\n",
    "a method that no rule has": "DELETE /echo HTTP/1.1\nHost: {h}\n\n",
}


@case
def what_could_be_read_in_two_ways():
    for name, alpn in (("clear", None), ("tls", ["http/1.1"])):
        for what, text in SMUGGLED.items():
            if name == "clear" and "method" in what or name == "tls" and "scheme" in what:
                continue
            clear.seen.clear()
            tls.seen.clear()
            answer = ask(text.replace("{h}", NAME), name, alpn)
            ok = answer[0] and answer[0] >= 400 and not clear.seen and not tls.seen
            check(f"{name}: {what} is refused", ok, (answer, clear.seen, tls.seen))
    for what, text in (("a LF alone", b"GET /echo HTTP/1.1\nHost: api.example.com\n\n"),
                       ("a CR alone", b"GET /echo HTTP/1.1\r\nX: a\rb\r\nHost: api.example.com\r\n\r\n")):
        with door.connect("clear") as s:
            s.sendall(text)
            same(f"{what} is refused", read_answer(s)[0], 400)
    with door.connect("clear") as s:
        s.sendall(b"GET /echo HTTP/1.1\r\nHost: api.example.com\r\n" + b"X-Long: " + b"x" * 70000)
        same("a head without end is refused", read_answer(s)[0], 431)
    with door.connect("clear") as s:
        s.sendall(b"GET /echo HTTP/1.1\r\nHost: api.example.com\r\n" + b"X: y\r\n" * 200 + b"\r\n")
        same("too many headers are refused", read_answer(s)[0], 431)


@case
def bodies():
    data = bytes(range(256)) * 4096
    digest = hashlib.sha256(data).hexdigest()
    for name, alpn in (("clear", None), ("tls", ["http/1.1"])):
        with door.connect(name, alpn) as s:
            s.sendall(f"POST /echo HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
            same(f"{name}: a body with a length", json.loads(read_answer(s)[2])["digest"], digest)
            s.sendall(f"POST /echo HTTP/1.1\r\nHost: {NAME}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
            for i in range(0, len(data), 50000):
                s.sendall(b"%x\r\n%s\r\n" % (len(data[i:i + 50000]), data[i:i + 50000]))
            s.sendall(b"0\r\nX-Check: yes\r\n\r\n")
            got = json.loads(read_answer(s)[2])
            same(f"{name}: a body in chunks, with trailers", (got["digest"], got["trailers"]), (digest, ["X-Check: yes"]))
            text = (f"POST /echo HTTP/1.1\r\nHost: {NAME}\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n").encode()
            for i in range(len(text)):
                s.sendall(text[i:i + 1])
            same(f"{name}: byte by byte", json.loads(read_answer(s)[2])["body"], "abcde")
    status, headers, body = get("/chunked")
    same("an answer in chunks, with trailers, without extensions", (status, body),
         (200, b"b\r\nhello world\r\n0\r\nX-Sum: 11\r\n\r\n"))
    same("for HTTP/1.0 without chunks", ask(f"GET /chunked HTTP/1.0\nHost: {NAME}\n\n", all=True).split(b"\r\n\r\n")[1],
         b"hello world")
    answer = ask(f"GET /close HTTP/1.1\nHost: {NAME}\n\n", all=True)
    check("an answer up to the end of the connection", answer.endswith(b"\r\n\r\nuntil the end"), answer)
    answer = ask(f"HEAD /echo HTTP/1.1\nHost: {NAME}\nConnection: close\n\n", all=True)
    check("HEAD has no body", b"Content-Length: " in answer and answer.endswith(b"\r\n\r\n"), answer)
    same("hints come before the answer", ask(f"GET /hints HTTP/1.1\nHost: {NAME}\nConnection: close\n\n", all=True)
         .count(b"HTTP/1.1 "), 2)
    status, _, body = get("/big?3000000")
    same("a large answer", (status, len(body)), (200, 3000000))


@case
def streams_are_not_held_up():
    for _ in range(5):  # on a busy machine two may be there when they are read
        with door.connect("tls", ["http/1.1"]) as s:
            s.sendall(f"GET /drip HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
            times, data = [], b""
            while data.count(b"data:") < 3:
                chunk = s.recv(65536)
                data += chunk
                times.append((time.monotonic(), chunk))
            arrived = [t for t, c in times if b"data:" in c]
        if len(arrived) == 3 and arrived[2] - arrived[0] > 0.4:
            break
    check("events arrive one by one", len(arrived) == 3 and arrived[2] - arrived[0] > 0.4, times)
    with door.connect("clear") as s:
        s.sendall(f"POST /expect HTTP/1.1\r\nHost: {NAME}\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n".encode())
        first = s.recv(65536)
        check("100 comes before the body", first.startswith(b"HTTP/1.1 100"), first)
        s.sendall(b"abcd")
        same("and the answer after it", json.loads(read_answer(s)[2])["length"], 4)
    with door.connect("clear") as s:
        s.sendall(f"POST /private/x HTTP/1.1\r\nHost: {NAME}\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n".encode())
        status, headers, _ = read_answer(s)
        same("a refusal comes instead of 100", (status, headers.get("connection")), (403, "close"))
    with door.connect("clear") as s:
        s.sendall(f"POST /early HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: 100000000\r\n\r\n".encode() + b"x" * 100000)
        same("an early answer arrives", read_answer(s)[0], 413)


@case
def servers_that_misbehave():
    for what, path in (("both lengths", "/both"), ("LF alone", "/lf"), ("another protocol", "/garbage"),
                       ("an upgrade that was not asked for", "/switch"), ("no answer", "/none")):
        status, _, body = get(path)
        same(f"{what} from a server: 502", status, 502)
    answer = ask(f"GET /cut HTTP/1.1\nHost: {NAME}\n\n", all=True)
    check("an answer that was cut does not look whole", b"<reset>" in answer or len(answer.split(b"\r\n\r\n")[1]) < 100, answer)
    with door.connect("clear") as s:
        s.sendall(f"GET /unasked HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
        status, _, body = read_answer(s)
        same("an answer", (status, body), (200, b"one"))
        rest = read_all(s)
        check("what a server says unasked does not become the next answer", b"stray" not in rest, rest)
    for name, words in (("expired", "expired"), ("other", "hostname mismatch"), ("stranger", "issuer")):
        door.drain()
        status, _, body = get("/echo", name, ["http/1.1"])
        check(f"certificate ({name}): 502 that says why", status == 502 and words in body.decode(), body)
        e = door.event(outcome="unreachable")
        while words not in e["detail"]:
            e = door.event(outcome="unreachable")
        same(f"certificate ({name}): told", (e["status"], e["address"]), (502, ""))
    same("nobody there: 502", get("/echo", "nobody", ["http/1.1"])[0], 502)


@case
def names_in_tls():
    for what, host, alpn in (("another SNI", "evil.example.net", ["http/1.1"]), ("another protocol", NAME, ["imap"])):
        door.drain()
        try:
            door.connect("tls", alpn, host, verify=False).close()
            check(f"{what} is refused", False)
        except ssl.SSLError as e:
            check(f"{what} is refused with an alert", "ALERT" in str(e).upper() or "alert" in str(e), e)
        e = door.event("connection", outcome="blocked")
        check(f"{what} is told", "SNI" in e["detail"] or "protocol" in e["detail"], e)
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    c.check_hostname, c.verify_mode = False, ssl.CERT_NONE
    try:
        c.wrap_socket(door.connect("tls")).close()
        check("no SNI is refused", False)
    except ssl.SSLError:
        check("no SNI is refused", True)
    c.maximum_version = ssl.TLSVersion.TLSv1_1
    try:
        c.wrap_socket(door.connect("tls"), server_hostname=NAME).close()
        check("TLS 1.1 is refused", False)
    except (ssl.SSLError, ConnectionResetError):
        check("TLS 1.1 is refused", True)


@case
def the_proxy_door():
    with door.connect("proxy") as s:
        for host, path in ((NAME, "/a"), ("other.example.com", "/echo"), (NAME, "/b")):
            s.sendall(f"GET http://{host}{path} HTTP/1.1\r\nHost: {host}\r\nProxy-Connection: keep-alive\r\n\r\n".encode())
            same(f"a URL of {host} on one connection", read_answer(s)[0], 200)
        s.sendall(b"GET http://evil.example.net/ HTTP/1.1\r\nHost: evil.example.net\r\n\r\n")
        same("a URL of another host is refused", read_answer(s)[0], 403)
        s.sendall(f"GET http://{NAME}/ HTTP/1.1\r\nHost: evil.example.net\r\n\r\n".encode())
        same("Host and URL that differ", read_answer(s)[0], 400)
        s.sendall(f"GET http://{NAME}/private/x HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
        same("a denied path", read_answer(s)[0], 403)
        s.sendall(f"GET / HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
        same("no URL", read_answer(s)[0], 400)


@case
def websockets_pass():
    import websockets

    async def talk():
        async def echo(ws):
            async for message in ws:
                await ws.send(message)

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(place.good)
        async with websockets.serve(echo, "127.0.0.1", 0, ssl=context) as server:
            port = server.sockets[0].getsockname()[1]
            mine = Door(sys.argv[1], POLICY, {"ws": ("tls", NAME, 443, port)}, place=place)
            c = ssl.create_default_context(cafile=mine.ca)
            async with websockets.connect(f"wss://{NAME}/chat", ssl=c, host="127.0.0.1", port=mine.ports["ws"],
                                          server_hostname=NAME) as ws:
                for message in ("hello", "x" * 300000, b"\0\1\2"):
                    await ws.send(message)
                    same(f"a message of {len(message)} comes back", await ws.recv(), message)
            e = await asyncio.get_running_loop().run_in_executor(None, mine.event)
            same("a WebSocket is told", (e["status"], e["outcome"], e["path"]), (101, "allowed", "/chat"))
            try:
                async with websockets.connect(f"wss://{NAME}/private/chat", ssl=c, host="127.0.0.1",
                                              port=mine.ports["ws"], server_hostname=NAME):
                    check("a denied WebSocket is refused", False)
            except websockets.InvalidStatusCode as refused:
                same("a denied WebSocket is refused", refused.status_code, 403)
            same("the engine is whole", mine.close(), 0)

    asyncio.run(talk())


@case
def rules_that_change():
    with door.connect("clear") as s:
        s.sendall(f"GET /drip HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
        s.recv(10)
        door.rules(POLICY.replace("  - {host: api.example.com, protocol: http, port: 80}\n", ""))
        data = read_all(s)
        check("a request ends when its rule goes", b"data: 2" not in data, data)
    door.rules(POLICY)


@case
def caps_on_bytes():
    door.rules(POLICY.replace("network:", "network:\n  bytes: 300kB"))
    with door.connect("clear") as s:
        s.sendall(f"GET /big?2000000 HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
        data = read_all(s)
        check("an answer ends where the cap is, and not as if whole", len(data) < 1000000 and data.endswith(b"<reset>"), len(data))
    same("and is told", door.event(path="/big?2000000")["status"], 200)
    door.event("connection", outcome="blocked", detail="the cap on bytes is reached")
    door.rules(POLICY)


@case
def back_pressure():
    with door.connect("tls", ["http/1.1"]) as s:
        s.sendall(f"GET /big?200000000 HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
        time.sleep(1.0)
        m = door.memory()
        check("an answer that nobody reads waits at the server", m["bytes"] < 4000000, m)
    for _ in range(100):
        time.sleep(0.1)
        m = door.memory()
        if m["flows"] == 0:
            break
    same("nothing is left of connections that ended", m["flows"], 0)


@case
def sessions():
    """The second connection to a server goes on with the first one's session, if it is the same server."""
    for name, version in (("tls", "TLSv1.3"), ("tls, another port", "TLSv1.3"), ("tls12", "TLSv1.2")):
        own = Door(sys.argv[1], POLICY, {name: ("tls", NAME, {"tls": 443, "tls12": 444}.get(name, 8443), tls12.port if name == "tls12" else tls.port),
                                         "other": ("tls", NAME, 8443 if name == "tls" else 443, tls.port)}, place=place)

        def once(which):
            with own.connect(which, ["http/1.1"]) as s:
                s.sendall(f"GET /tls HTTP/1.1\r\nHost: {NAME}:{own_port(which)}\r\nConnection: close\r\n\r\n".encode())
                return json.loads(read_all(s).split(b"\r\n\r\n", 1)[1])

        def own_port(which):
            return {"tls": 443, "tls12": 444, "other": 8443 if name == "tls" else 443}.get(which, 8443)

        same(f"{name}: the first is new, the others go on", [once(name) for _ in range(4)], [[False, version]] + [[True, version]] * 3)
        same(f"{name}: not at another port", once("other")[0], False)
        same("the engine is whole", own.close(), 0)


@case
def slow_heads():
    """A head of which a byte comes now and then does not hold a connection for ever."""
    quick = Door(sys.argv[1], POLICY, {"clear": ("http", NAME, 80, clear.port), "tls": ("tls", NAME, 443, tls.port),
                                       "proxy": ("forward", "-", 80, 1)}, place=place, env={"HTTP_DOOR_HEAD_MS": "600"})
    for name, alpn in (("clear", None), ("tls", ["http/1.1"]), ("proxy", None)):
        with quick.connect(name, alpn) as s:
            begun, answer = time.monotonic(), b""
            s.settimeout(0.1)
            for byte in b"GET /echo HTTP/1.1\r\nHost: " + b"a" * 200:
                try:
                    s.sendall(bytes([byte]))
                    answer += s.recv(65536)
                except TimeoutError:
                    continue
                except OSError:
                    break
                if b"\r\n\r\n" in answer:
                    break
            took = time.monotonic() - begun
            check(f"{name}: 408, when its time is over", answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
                  and b"did not come in time" in answer and 0.5 < took < 5, [took, answer])
        e = quick.event(status=408)
        check(f"{name}: and told", e["outcome"] == "blocked" and "did not come in time" in e["detail"], e)
    with quick.connect("clear") as s:
        s.sendall(b"PRI * HT")
        begun = time.monotonic()
        check("what may become HTTP/2: ended", read_all(s) in (b"", b"<reset>") and time.monotonic() - begun < 5)
        check("and told", "did not come in time" in quick.event("connection", outcome="blocked")["detail"])
    with quick.connect("tls", ["http/1.1"]) as s:
        for pause in 1, 1, 0:
            s.sendall(f"GET /echo HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
            same("a connection may be idle between requests", read_answer(s)[0], 200)
            time.sleep(pause)
        s.sendall(f"POST /echo HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: 3\r\n\r\n".encode())
        for byte in b"a", b"b", b"c":
            time.sleep(0.5)
            s.sendall(byte)
        same("and a body may take its time", read_answer(s)[0], 200)
    same("the engine is whole", quick.close(), 0)


@case
def many_at_once():
    def one(results):
        try:
            results.append(get("/echo", "tls", ["http/1.1"])[0])
        except OSError as e:
            results.append(e)

    results = []
    threads = [threading.Thread(target=one, args=(results,)) for _ in range(100)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    same("100 connections at once", results, [200] * 100)


same("the engine is whole at the end", door.close(), 0)
place.remove()
tap.done()
