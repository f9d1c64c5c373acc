"""Secrets through the engine: put in where they belong, refused elsewhere, masked in answers.
usage: test_http_secrets.py HTTP-DOOR"""
import asyncio
import base64
import json
import ssl
import sys
import urllib.parse

import tap
import upstream
from door import NAME, Door, Place, read_all, read_answer
from tap import case, check, same

POLICY = """
pale: 1
network:
  allow:
  - {host: api.example.com, protocol: tls, intercept: true}
  - {host: api.example.com, protocol: http, port: 80}
  - {host: other.example.com, protocol: http, port: 80}
  - {host: inner.example.com, protocol: http, port: 80}
  secrets:
  - {env: API_KEY, value_from: "env:X", hosts: [api.example.com], header: Authorization}
  - {env: QUERY_KEY, value_from: "env:X", hosts: [api.example.com], query: key}
  - {env: PASSWORD, value_from: "env:X", hosts: [api.example.com], basic: true}
  - {env: INNER, value_from: "env:X", hosts: [inner.example.com], header: X-Token}
"""
API, QUERY, PASSWORD, INNER = [f"pale-placeholder-{i:04d}-{'abcd'[i] * 20}" for i in range(4)]
VALUES = {API: "sk-REAL-0123456789abcdefghijk", QUERY: 'q/v+al&ue="2"\\x', PASSWORD: "hunter2hunter2", INNER: "inner-value-99"}

place = Place()
tls = upstream.serve(place.good)
clear = upstream.serve()
door = Door(sys.argv[1], POLICY, {
    "tls": ("tls", NAME, 443, tls.port), "clear": ("http", NAME, 80, clear.port),
    "other": ("http", "other.example.com", 80, clear.port), "inner": ("http", "inner.example.com", 80, clear.port),
}, VALUES.items(), place)


def ask(path="/echo", name="tls", host=NAME, headers=(), body=None, method=None, chunks=None):
    """Status, headers, body, and what the server saw of it."""
    method = method or ("POST" if body or chunks else "GET")
    text = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers)
    if chunks:
        text += "Transfer-Encoding: chunked\r\n\r\n"
        data = text.encode() + b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in chunks) + b"0\r\n\r\n"
    else:
        data = (text + (f"Content-Length: {len(body)}\r\n" if body else "") + "\r\n").encode() + (body or b"")
    Spy.last = {}
    with door.connect(name, ["http/1.1"] if name == "tls" else None) as s:
        s.sendall(data)
        return read_answer(s)


class Spy(upstream.Handler):
    """Keeps what came, since the answer is masked."""
    last = {}

    def answer(self, data, **headers):
        Spy.last = {"headers": {k.lower(): v for k, v in self.headers.items()}, "path": self.path}
        super().answer(data, **headers)


tls.RequestHandlerClass = clear.RequestHandlerClass = Spy


@case
def values_go_where_they_belong():
    for what, text in (("alone", API), ("Bearer", f"Bearer {API}"), ("token", f"token {API}"), ("twice", f"{API}, {API}")):
        status, headers, body = ask(headers=[("authorization", text)])
        same(f"header, {what}: the server has the value", (status, Spy.last["headers"]["authorization"]),
             (200, text.replace(API, VALUES[API])))
        check(f"header, {what}: the answer does not", VALUES[API] not in body.decode() + str(headers), body)
        same(f"header, {what}: its length is the same", int(headers["content-length"]), len(body))
    door.drain()
    status, headers, body = ask(f"/echo?a=1&key={QUERY}&b=2")
    same("query: the server has the value", Spy.last["path"],
         f"/echo?a=1&key={urllib.parse.quote(VALUES[QUERY], safe='')}&b=2")
    check("query: the answer does not, JSON or URL-encoded", urllib.parse.quote(VALUES[QUERY], safe="") not in body.decode()
          and "ue=" not in body.decode(), body)
    e = door.event(path=f"/echo?a=1&key={QUERY}&b=2")
    same("query: the event has the placeholder, not the value", e["outcome"], "allowed")
    for user, password in (("me", PASSWORD), (PASSWORD, "x-oauth-basic"), (PASSWORD, "")):
        text = base64.b64encode(f"{user}:{password}".encode()).decode()
        status, headers, body = ask(headers=[("Authorization", "Basic " + text)])
        got = base64.b64decode(Spy.last["headers"]["authorization"].split()[1]).decode()
        same(f"basic: the server has the value", (status, got), (200, f"{user}:{password}".replace(PASSWORD, VALUES[PASSWORD])))
        check("basic: the answer does not", got not in body.decode() and
              base64.b64encode(got.encode()).decode() not in body.decode(), body)
    status, headers, body = ask(name="inner", host="inner.example.com", headers=[("x-token", INNER)])
    same("in clear where the rules leave no other way", Spy.last["headers"]["x-token"], VALUES[INNER])
    check("and masked too", VALUES[INNER] not in body.decode() and "*" * len(VALUES[INNER]) in body.decode(), body)


FORM = [("Content-Type", "Application/X-WWW-Form-Urlencoded; charset=utf-8")]


@case
def placeholders_elsewhere_are_refused():
    shifted = [base64.b64encode(b"x" * n + API.encode() + b"yy") for n in range(3)]
    encoded = "".join("%%%02x" % b for b in API.encode())
    for what, more in (
            ("another header", dict(headers=[("X-Other", API)])),
            ("a header's name", dict(headers=[(API, "x")])),
            ("another host", dict(name="other", host="other.example.com", headers=[("Authorization", API)])),
            ("another host, URL-encoded", dict(name="other", host="other.example.com", path="/echo?x=" + encoded)),
            ("clear HTTP where TLS is allowed", dict(name="clear", headers=[("Authorization", API)])),
            ("the path", dict(path="/echo/" + API)),
            ("the path, encoded", dict(path="/echo/" + encoded)),
            ("the path, encoded twice", dict(path="/echo/" + encoded.replace("%", "%25"))),
            ("another query field", dict(path="/echo?x=" + API)),
            ("the query of a header's secret", dict(path="/echo?key=" + API)),
            ("a query field with more in it", dict(path="/echo?key=a" + QUERY)),
            ("a body", dict(body=b'{"a": "' + API.encode() + b'"}')),
            ("a body in chunks", dict(chunks=[API[:11].encode(), API[11:].encode()])),
            ("a body in small chunks", dict(chunks=[bytes([b]) for b in b"xx" + API.encode()])),
            ("a body, each byte percent-encoded", dict(body=b"x=" + "".join(f"%{b:02x}" for b in API.encode()).encode())),
            ("a form, encoded in part", dict(headers=FORM, body=b"a=b&key=x" + API.replace("-", "%2D").replace("e", "%65").encode())),
            ("a form, encoded in part, in small chunks", dict(headers=FORM, chunks=[bytes([c]) for c in
                                                                                    b"100%+%7" + API.replace("s", "%73").encode()])),
            ("a body, base64", dict(body=b"data=" + shifted[0])),
            ("a body, base64 shifted", dict(body=b"data=" + shifted[1])),
            ("a body, base64 shifted by two", dict(body=b"data=" + shifted[2])),
            ("a body, URL-safe base64", dict(body=base64.urlsafe_b64encode(b"\xff\xfe?>" + API.encode()))),
            ("a body, hex", dict(body=API.encode().hex().encode())),
            ("basic, for another secret's place", dict(headers=[("Authorization", "Basic " + base64.b64encode(
                b"me:" + API.encode()).decode())])),
            ("a cookie", dict(headers=[("Cookie", "session=" + API)])),
            ("the method", dict(method=API.upper()[:10] + API[10:30] + API[30:]))):
        door.drain()
        status, headers, body = ask(**more)
        if what == "the method":  # too long for one, so it can't be read
            check(f"{what}: refused", status in (400, 403), (status, body))
            continue
        same(f"{what}: refused", (status, headers.get("x-pale-blocked")), (403, "policy"))
        same(f"{what}: the server has nothing", Spy.last, {})
        e = door.event(outcome="exfiltration")
        check(f"{what}: told, without a value", "placeholder" in e["detail"] and
              not any(v in json.dumps(e) for v in VALUES.values()), e)
    with door.connect("tls", ["http/1.1"]) as s:
        s.sendall(f"POST /echo HTTP/1.1\r\nHost: {NAME}\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n"
                  f"X-Sum: {API}\r\n\r\n".encode())
        same("trailers: refused", read_answer(s)[0], 403)
    status, _, body = ask(headers=[("X-Other", API[:20])])
    same("half a placeholder is just text", status, 200)
    status, _, body = ask(headers=FORM, body=b"a=%2&b=%zz&c=%" + API[:20].replace("-", "%2D").encode() + b"&d=+%")
    same("a form with something like it is one", (status, json.loads(body)["length"] > 0), (200, True))


@case
def answers_are_masked():
    auth = [("Authorization", f"Bearer {API}")]
    status, headers, body = ask(headers=auth)
    check("a header that repeats it", headers["x-sent"] == "Bearer " + "*" * len(VALUES[API]), headers)
    status, headers, body = ask("/split", headers=auth)
    check("byte by byte", VALUES[API].encode() not in body and body.endswith(b"***."), body)
    check("byte by byte, all but its first letters", body.count(b"*") >= len(VALUES[API]) - 3, body)
    status, headers, body = ask("/base64", headers=auth)
    plain = b"".join(base64.b64decode(p.replace(b"*", b"A") + b"==") for p in body.split())
    check("base64", VALUES[API][2:-2].encode() not in plain and b"****" in body, (body, plain))
    status, headers, body = ask("/gzip", headers=auth)
    check("encoded against our wish: refused", status == 502 and b"gzip" in body, (status, body))
    same("identity is asked for", (ask()[0], Spy.last["headers"].get("accept-encoding")), (200, "identity"))
    status, headers, body = ask("/gzip", name="other", host="other.example.com")
    same("of another host encoded answers pass", (status, headers.get("content-encoding")), (200, "gzip"))
    with door.connect("tls", ["http/1.1"]) as s:
        s.sendall(f"GET /drip HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
        same("a stream ends whole", read_answer(s)[2].count(b"data:"), 3)
    status, _, body = ask("/big?5000000")
    same("a large answer passes whole", (status, body), (200, b"x" * 5000000))


@case
def http2_likewise():
    from http2_peers import Client, Server
    server = Server(place.good)
    mine = Door(sys.argv[1], POLICY, {"h2": ("tls", NAME, 443, server.port)}, VALUES.items(), place)
    c = Client(mine, "h2")
    status, body, _ = c.get("/echo", extra=[("authorization", f"Bearer {API}")])
    same("HTTP/2: the server has the value", server.headers["authorization"], f"Bearer {VALUES[API]}")
    check("HTTP/2: the answer does not", status == 200 and VALUES[API] not in body.decode() and "****" in body.decode(), body)
    same("HTTP/2: identity is asked for", server.headers.get("accept-encoding"), "identity")
    status, body, _ = c.get(f"/echo?key={QUERY}")
    check("HTTP/2: in the query", urllib.parse.quote(VALUES[QUERY], safe="") in server.headers[":path"], server.headers)
    same("HTTP/2: another header: refused", c.get("/echo", extra=[("x-other", API)])[0], 403)
    i = c.request("/echo", end=False, method="POST")
    c.c.send_data(i, b"abc" + API[:9].encode())
    c.flush()
    c.c.send_data(i, API[9:].encode(), end_stream=True)
    c.flush()
    same("HTTP/2: in a body, in two frames: refused", c.answer(i)[0], 403)
    i = c.request("/echo", end=False, method="POST")
    c.c.send_data(i, b"abc")
    c.c.send_headers(i, [("x-sum", API)], end_stream=True)
    c.flush()
    same("HTTP/2: in trailers: refused", c.answer(i)[0], 403)
    same("HTTP/2: others go on", c.get("/echo")[0], 200)
    e = mine.event(outcome="exfiltration")
    check("HTTP/2: told", "placeholder" in e["detail"], e)
    same("HTTP/2: the engine is whole", mine.close(), 0)


@case
def websockets_likewise():
    import websockets

    async def talk():
        seen = {}

        async def echo(ws):
            seen.update({k: ws.request_headers[k] for k in ('Authorization',)})
            await ws.send(f"you are {ws.request_headers['Authorization']}")
            try:
                async for message in ws:
                    await ws.send(message)
            except websockets.ConnectionClosed:
                pass

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(place.good)
        async with websockets.serve(echo, "127.0.0.1", 0, ssl=context) as server:
            mine = Door(sys.argv[1], POLICY, {"ws": ("tls", NAME, 443, server.sockets[0].getsockname()[1])},
                        VALUES.items(), place)
            c = ssl.create_default_context(cafile=mine.ca)
            async with websockets.connect(f"wss://{NAME}/chat", ssl=c, host="127.0.0.1", port=mine.ports["ws"],
                                          server_hostname=NAME, extra_headers={"Authorization": f"Bearer {API}"}) as ws:
                same("WebSocket: masked", await ws.recv(), "you are Bearer " + "*" * len(VALUES[API]))
                same("WebSocket: the server has the value", seen["Authorization"], f"Bearer {VALUES[API]}")
                await ws.send("plain")
                same("WebSocket: other words pass", await ws.recv(), "plain")
                try:
                    await ws.send("take " + API)
                    got = await ws.recv()
                    check("WebSocket: a placeholder is refused", False, got)
                except websockets.ConnectionClosed:
                    check("WebSocket: a placeholder is refused", True)
            e = await asyncio.get_running_loop().run_in_executor(None, lambda: mine.event(outcome="exfiltration"))
            check("WebSocket: told", "WebSocket" in e["detail"], e)
            same("WebSocket: the engine is whole", mine.close(), 0)

    asyncio.run(talk())


same("the engine is whole at the end", door.close(), 0)
place.remove()
tap.done()
