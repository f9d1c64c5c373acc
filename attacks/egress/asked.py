"""Requests that say one thing to a filter and another to a server, on connections that are allowed.

usage: asked.py < {"allowed": host, "target": host, "port": port, "tls": bool, "rules": true where the allowed host may
only be asked GET /v1/**}
Prints {what: answer's first bytes}; the judge is what arrives at the servers.
"""
import json
import socket
import ssl
import sys
from concurrent.futures import ThreadPoolExecutor

given = json.load(sys.stdin)
a, t = given["allowed"].encode(), given["target"].encode()
results = {}
pool = ThreadPoolExecutor(16)


def connect():
    s = socket.create_connection((given["allowed"], given["port"]), 4)
    if given.get("tls"):
        c = ssl.create_default_context()
        c.set_alpn_protocols(["http/1.1"])
        s = c.wrap_socket(s, server_hostname=given["allowed"])
    s.settimeout(1.0)
    return s


def send(what, *pieces):
    pool.submit(send_now, what, *pieces)


def send_now(what, *pieces):
    try:
        with connect() as s:
            answer = b""
            for p in pieces:
                s.sendall(p)
            try:
                while len(answer) < 65536 and (part := s.recv(65536)):
                    answer += part
            except TimeoutError:
                pass
            results[what] = answer[:400].decode("latin-1")
    except OSError as e:
        results[what] = f"no: {e}"


H = b"Host: " + a + b"\r\n"
X = b"Host: " + t + b"\r\n"
OK = b"GET /v1/ok HTTP/1.1\r\n" + H
EVIL = b"POST /admin HTTP/1.1\r\n" + X + b"Content-Length: 0\r\n\r\n"
HIDDEN = b"POST /admin HTTP/1.1\r\n" + H + b"X-Attack: hidden\r\nContent-Length: 0\r\n\r\n"

send("fine: an ordinary request", OK + b"Connection: close\r\n\r\n")
send("fine: two of them", OK + b"\r\n" + OK + b"Connection: close\r\n\r\n")
send("pipelined, the second to another", OK + b"\r\n" + EVIL)
send("pipelined, the second not allowed", OK + b"\r\n" + HIDDEN)
for what, line in {
    "another Host": X, "no Host": b"", "two Hosts": H + X, "two Hosts, other order": X + H, "two alike": H + H,
    "Host with a port of another": b"Host: " + a + b":8080\r\n", "Host: empty": b"Host:\r\n", "Host with a blank before the colon": b"Host : " + t + b"\r\n" + H,
    "folded Host": b"Host: " + a + b"\r\n " + t + b"\r\n", "folded, hidden": b"X: y\r\n\tHost: " + t + b"\r\n" + H,
    "Host behind a lone return": b"X: y\rHost: " + t + b"\r\n" + H, "Host behind a lone newline": b"X: y\nHost: " + t + b"\r\n" + H,
    "Host behind NUL": b"X: y\0Host: " + t + b"\r\n" + H, "host with user": b"Host: x@" + t + b"\r\n", "host list": b"Host: " + a + b", " + t + b"\r\n",
    "hOsT": b"hOsT: " + t + b"\r\n", "Host and X-Forwarded-Host": H + b"X-Forwarded-Host: " + t + b"\r\nX-Fine: 1\r\n",
}.items():
    send(what, b"GET /v1/ok HTTP/1.1\r\n" + line + b"Connection: close\r\n\r\n")
for what, line in {
    "absolute form of another": b"GET http://" + t + b"/v1/ok HTTP/1.1", "absolute https": b"GET https://" + t + b"/v1/ok HTTP/1.1",
    "authority with user": b"GET http://" + a + b"@" + t + b"/v1/ok HTTP/1.1", "CONNECT": b"CONNECT " + t + b":80 HTTP/1.1",
    "network path": b"GET //" + t + b"/v1/ok HTTP/1.1", "two targets": b"GET /v1/ok http://" + t + b"/ HTTP/1.1",
    "HTTP/0.9": b"GET /v1/ok", "HTTP/2.0": b"GET /v1/ok HTTP/2.0", "HTTP/1.1 with more": b"GET /v1/ok HTTP/1.1 x",
    "PRI": b"PRI * HTTP/2.0", "tab between": b"GET\t/v1/ok\tHTTP/1.1", "method in lower case": b"post /v1/ok HTTP/1.1",
    "method with a blank before": b" POST /v1/ok HTTP/1.1", "TRACE": b"TRACE /v1/ok HTTP/1.1", "OPTIONS *": b"OPTIONS * HTTP/1.1",
    "method with a control": b"GE\x01T /v1/ok HTTP/1.1", "star": b"GET * HTTP/1.1",
}.items():
    send(what, line + b"\r\n" + H + b"Connection: close\r\nContent-Length: 0\r\n\r\n")
# Two lengths: whoever believes the other one sees a second request.
body = HIDDEN
chunked = b"0\r\n\r\n" + body
for what, fields, data in (
    ("length and chunks", b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n" % len(chunked), chunked),
    ("chunks and length 0", b"Transfer-Encoding: chunked\r\nContent-Length: 0\r\n", chunked),
    ("chunks by another name", b"Content-Length: 0\r\nTransfer-Encoding: xchunked\r\n", body),
    ("chunks, identity", b"Content-Length: 0\r\nTransfer-Encoding: chunked, identity\r\n", chunked),
    ("chunks twice", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", chunked),
    ("chunks behind a tab", b"Content-Length: 0\r\nTransfer-Encoding:\tchunked\r\n", chunked),
    ("chunks behind \\v", b"Content-Length: 0\r\nTransfer-Encoding: \x0bchunked\r\n", chunked),
    ("chunks, blank before the colon", b"Content-Length: 0\r\nTransfer-Encoding : chunked\r\n", chunked),
    ("two lengths", b"Content-Length: 0\r\nContent-Length: %d\r\n" % len(body), body),
    ("a list of lengths", b"Content-Length: 0, %d\r\n" % len(body), body),
    ("length with a sign", b"Content-Length: +%d\r\n" % len(body), body),
    ("length negative", b"Content-Length: -1\r\n", body),
    ("length in hex", b"Content-Length: 0x%x\r\n" % len(body), body),
    ("length too large", b"Content-Length: 184467440737095516160\r\n", body),
    ("length with a blank within", b"Content-Length: 1 0\r\n", body),
    ("no length", b"", body),
    ("chunk size with a sign", b"Transfer-Encoding: chunked\r\n", b"+0\r\n\r\n" + body),
    ("chunk size too large", b"Transfer-Encoding: chunked\r\n", b"FFFFFFFFFFFFFFFF1\r\nx\r\n0\r\n\r\n" + body),
    ("chunk size, extension with a newline", b"Transfer-Encoding: chunked\r\n", b"1;a\nb\r\nx\r\n0\r\n\r\n" + body),
    ("chunk without its end", b"Transfer-Encoding: chunked\r\n", b"1\r\nxx0\r\n\r\n" + body),
    ("trailer with a Host", b"Transfer-Encoding: chunked\r\n", b"0\r\nHost: " + t + b"\r\n\r\n" + body),
    ("Expect, and on at once", b"Expect: 100-continue\r\nContent-Length: 0\r\n", body),
    ("upgrade to HTTP/2", b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nContent-Length: 0\r\n", body),
    ("upgrade that is not one", b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nContent-Length: 0\r\n", body),
):
    send("smuggled by " + what, b"GET /v1/ok HTTP/1.1\r\n" + H + fields + b"\r\n" + data)
# Paths that a server may read as /admin.
for path in ("/admin", "//admin", "/v1/../admin", "/v1/./../admin", "/v1/%2e%2e/admin", "/v1/%2E%2e%2fadmin", "/v1/..%2fadmin", "/v1/..;/admin",
             "/v1/..\\admin", "/v1/%5c..%5cadmin", "/%61dmin", "/v1/../../admin", "/v1//../admin", "/v1/x/../../admin", "/v1/%252e%252e/admin",
             "/v1/..%00/admin", "/v1/%2e./admin", "/.//admin", "/v1/..?/admin", "/v1/..#/admin", "/v1/%c0%ae%c0%ae/admin", "?/v1/admin",
             "/admin?/v1/", "/admin#/v1/", "/admin;/v1/", "/v1", "/V1/ok", "/v1%2fok"):
    send("path " + path, b"GET " + path.encode() + b" HTTP/1.1\r\n" + H + b"Connection: close\r\n\r\n")
for method in ("POST", "PUT", "DELETE", "PATCH", "HEAD", "get", "Get", "GETX", "FOO"):
    send("method " + method, method.encode() + b" /v1/ok HTTP/1.1\r\n" + H + b"Connection: close\r\nContent-Length: 0\r\n\r\n")
for field in ("X-HTTP-Method-Override: DELETE", "X-Original-URL: /admin", "X-Rewrite-URL: /admin"):
    # Nothing that a proxy can know of: told here so that nobody thinks it was forgotten.
    send("header " + field, OK + field.encode() + b"\r\nX-Fine: 1\r\nConnection: close\r\n\r\n")
send("many fields", OK + b"X: y\r\n" * 100000 + b"\r\n")
send("one long field", OK + b"X: " + b"y" * 2000000 + b"\r\n\r\n")
send("one long target", b"GET /v1/" + b"y" * 1000000 + b" HTTP/1.1\r\n" + H + b"\r\n")
send("newlines without end", b"\r\n" * 100000 + b"POST /admin HTTP/1.1\r\n" + X + b"\r\n")
pool.shutdown()
print(json.dumps(results))
