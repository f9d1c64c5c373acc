"""Servers behind the engine: HTTP/1 with every way to end a body, and ones that misbehave."""
import base64
import gzip
import hashlib
import http.server
import json
import socketserver
import ssl
import threading
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        if "chunked" in self.headers.get("transfer-encoding", ""):
            data = b""
            while size := int(self.rfile.readline(), 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.trailers = []
            while (line := self.rfile.readline()) not in (b"\r\n", b""):
                self.trailers.append(line.decode().strip())
            return data
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def answer(self, data, **headers):
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def raw(self, data):
        self.wfile.write(data)
        self.close_connection = True

    def do_GET(self):
        path = self.path.split("?")[0]
        self.trailers = None
        if path == "/expect":
            time.sleep(0.1)
        if path == "/early":
            self.raw(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        data = self.body()
        if path in ("/echo", "/expect"):
            self.server.seen.append(self.raw_requestline)
            self.answer(json.dumps({
                "method": self.command, "path": self.path, "headers": self.headers.items(),
                "length": len(data), "digest": hashlib.sha256(data).hexdigest(), "trailers": self.trailers,
                "body": data[:200].decode("latin-1"),
            }).encode(), X_Sent=self.headers.get("authorization", "none"))
        elif path == "/chunked":
            self.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
                     b"5;ext=1\r\nhello\r\n6\r\n world\r\n0\r\nX-Sum: 11\r\n\r\n")
            self.close_connection = False
        elif path == "/drip":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            for i in range(3):
                self.wfile.write(b"9\r\ndata: %d\n\n\r\n" % i)
                time.sleep(0.3)
            self.wfile.write(b"0\r\n\r\n")
        elif path == "/close":
            self.raw(b"HTTP/1.0 200 OK\r\n\r\nuntil the end")
        elif path == "/cut":
            self.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")
        elif path == "/none":
            self.close_connection = True
        elif path == "/both":
            self.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        elif path == "/lf":
            self.raw(b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok")
        elif path == "/garbage":
            self.raw(b"SSH-2.0-nope\r\n\r\n")
        elif path == "/switch":
            self.raw(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n")
        elif path == "/hints":
            self.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n")
            self.answer(b"after hints")
        elif path == "/unasked":
            self.answer(b"one")
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray")
        elif path == "/tls":
            self.answer(json.dumps([self.connection.session_reused, self.connection.version()]).encode())
        elif path == "/gzip":
            self.answer(gzip.compress(b"squeezed"), Content_Encoding="gzip")
        elif path == "/split":  # the secret that came in Authorization, in pieces
            value = self.headers.get("authorization", "").split()[-1].encode()
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\nit is " % (len(value) + 7))
            for i in range(len(value)):
                self.wfile.write(value[i:i + 1])
                self.wfile.flush()
                time.sleep(0.002)
            self.wfile.write(b".")
        elif path == "/base64":
            value = self.headers.get("authorization", "").encode()
            self.answer(base64.b64encode(b"x" + value) + b" " + base64.b64encode(b"xy" + value))
        elif path == "/big":
            n = int(self.path.split("?")[1])
            self.send_response(200)
            self.send_header("Content-Length", str(n))
            self.end_headers()
            block = b"x" * 65536
            while n > 0:
                self.wfile.write(block[:n])
                n -= len(block)
        else:
            self.answer(b"ok")

    do_POST = do_PUT = do_DELETE = do_HEAD = do_OPTIONS = do_PATCH = do_GET


class Quiet(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, request, client_address):
        pass


def serve(pem=None, alpn=("http/1.1",), handler=Handler, version=None):
    """An HTTP/1 server; with TLS if there is a certificate. Has .port and .seen."""
    s = Quiet(("127.0.0.1", 0), handler)
    s.seen = []
    s.port = s.server_port
    if pem:
        c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        c.load_cert_chain(pem)
        if version:
            c.maximum_version = version
        if alpn:
            c.set_alpn_protocols(list(alpn))
        s.socket = c.wrap_socket(s.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=s.serve_forever, args=(0.05,), daemon=True).start()
    return s
