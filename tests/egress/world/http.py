"""HTTP/1.1 and HTTP/2 servers: they read a request, ask a function for the answer, and send it.

answer(Request) -> Response, or a function that takes the connection over (WebSocket).
"""
import base64
import hashlib
import struct
from dataclasses import dataclass, field


@dataclass
class Request:
    method: str
    target: str  # path and query
    host: str
    headers: list
    body: bytes
    scheme: str
    version: str
    sni: str = None
    address: str = None
    trailers: list = field(default_factory=list)

    def header(self, name, default=None):
        return next((v for k, v in self.headers if k.lower() == name), default)

    @property
    def path(self):
        return self.target.partition("?")[0]


@dataclass
class Response:
    status: int = 200
    body: bytes = b""
    type: str = "text/plain"
    headers: list = field(default_factory=list)
    chunks: object = None  # an iterable of bytes instead of body
    trailers: list = field(default_factory=list)


REASONS = {100: "Continue", 200: "OK", 201: "Created", 204: "No Content", 301: "Moved Permanently", 302: "Found",
           401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 500: "Internal Server Error"}


def tell(record, r):
    record("request", host=r.host, method=r.method, path=r.target, version=r.version, scheme=r.scheme, sni=r.sni,
           headers=r.headers, body=r.body[:4096].decode("latin-1"), bytes=len(r.body), address=r.address)


# ---------------------------------------------------------------- HTTP/1

def serve_1(s, own, scheme, sni, answer, record):
    f = s.makefile("rb")
    while True:
        line = f.readline(65536)
        if not line.strip():
            return
        try:
            method, target, version = line.decode("latin-1").split()
        except ValueError:
            record("bad-request", line=line.decode("latin-1"))
            s.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            return
        headers = read_headers(f)
        request = Request(method, target, "", headers, b"", scheme, version, sni, own[0])
        request.host = (request.header("host") or "").rpartition(":")[0] or request.header("host") or ""
        if (request.header("expect") or "").lower() == "100-continue":
            s.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if "chunked" in (request.header("transfer-encoding") or "").lower():
            parts = []
            while n := int(f.readline().split(b";")[0], 16):
                parts.append(f.read(n))
                f.readline()
            request.trailers = read_headers(f)
            request.body = b"".join(parts)
        else:
            request.body = f.read(int(request.header("content-length") or 0))
        tell(record, request)
        if (request.header("upgrade") or "").lower() == "websocket":
            websocket(s, f, request, record)
            return
        r = answer(request)
        close = (request.header("connection") or "").lower() == "close" or version == "HTTP/1.0"
        head = [f"HTTP/1.1 {r.status} {REASONS.get(r.status, 'Status')}", f"Content-Type: {r.type}",
                *[f"{k}: {v}" for k, v in r.headers]]
        if close:
            head.append("Connection: close")
        if r.chunks is None:
            head.append(f"Content-Length: {len(r.body)}")
            s.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + (b"" if method == "HEAD" else r.body))
        else:
            head.append("Transfer-Encoding: chunked")
            if r.trailers:
                head.append("Trailer: " + ", ".join(k for k, _ in r.trailers))
            s.sendall("\r\n".join(head).encode() + b"\r\n\r\n")
            for part in r.chunks:
                s.sendall(b"%x\r\n%s\r\n" % (len(part), part))
            s.sendall(b"0\r\n" + "".join(f"{k}: {v}\r\n" for k, v in r.trailers).encode() + b"\r\n")
        if close:
            return


def read_headers(f):
    headers = []
    while (line := f.readline(65536)) not in (b"\r\n", b"\n", b""):
        name, _, value = line.decode("latin-1").partition(":")
        headers.append((name, value.strip()))
    return headers


def websocket(s, f, request, record):
    accept = base64.b64encode(hashlib.sha1((request.header("sec-websocket-key") +
                                            "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
    s.sendall(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
              f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode())
    while len(head := f.read(2)) == 2:
        opcode, length = head[0] & 15, head[1] & 127
        if length == 126:
            length, = struct.unpack("!H", f.read(2))
        elif length == 127:
            length, = struct.unpack("!Q", f.read(8))
        mask = f.read(4) if head[1] & 128 else bytes(4)
        data = bytes(b ^ mask[i % 4] for i, b in enumerate(f.read(length)))
        if opcode == 8:
            s.sendall(bytes([0x88, len(data)]) + data)
            return
        record("websocket", text=data.decode("latin-1"))
        size = bytes([len(data)]) if len(data) < 126 else b"\x7e" + struct.pack("!H", len(data)) if len(data) < 65536 else \
            b"\x7f" + struct.pack("!Q", len(data))
        s.sendall(bytes([0x80 | (10 if opcode == 9 else opcode)]) + size + data)


# ---------------------------------------------------------------- HTTP/2

def serve_2(s, own, sni, answer, record):
    import h2.config
    import h2.connection
    import h2.events

    c = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="latin-1",
                                                             validate_inbound_headers=False))
    c.initiate_connection()
    c.increment_flow_control_window(1 << 24)
    s.sendall(c.data_to_send())
    streams, waiting = {}, {}

    def push():
        """As much of each answer as the windows let through."""
        for stream, (parts, trailers) in list(waiting.items()):
            while parts:
                room = min(c.local_flow_control_window(stream), c.max_outbound_frame_size)
                if room <= 0:
                    break
                part = parts.pop(0)
                if len(part) > room:
                    parts.insert(0, part[room:])
                    part = part[:room]
                c.send_data(stream, part, end_stream=not parts and not trailers)
            if not parts:
                if trailers:
                    c.send_headers(stream, trailers, end_stream=True)
                del waiting[stream]
        s.sendall(c.data_to_send())

    while data := s.recv(1 << 16):
        for e in c.receive_data(data):
            if isinstance(e, h2.events.RequestReceived):
                fields = dict((k, v) for k, v in e.headers if k.startswith(":"))
                streams[e.stream_id] = Request(fields.get(":method", ""), fields.get(":path", ""),
                                               fields.get(":authority", "").rpartition(":")[0] or fields.get(":authority", ""),
                                               [(k, v) for k, v in e.headers if not k.startswith(":")], b"", "https",
                                               "HTTP/2", sni, own[0])
            elif isinstance(e, h2.events.DataReceived):
                if e.stream_id in streams:
                    streams[e.stream_id].body += e.data
                c.acknowledge_received_data(e.flow_controlled_length, e.stream_id)
            elif isinstance(e, h2.events.TrailersReceived):
                streams[e.stream_id].trailers = e.headers
            elif isinstance(e, h2.events.StreamEnded):
                request = streams.pop(e.stream_id, None)
                if not request:
                    continue
                tell(record, request)
                r = answer(request)
                parts = [r.body] if r.chunks is None else list(r.chunks)
                parts = [p for p in parts if p] if request.method != "HEAD" else []
                head = [(":status", str(r.status)), ("content-type", r.type), *[(k.lower(), v) for k, v in r.headers]]
                if r.chunks is None:
                    head.append(("content-length", str(len(r.body))))
                c.send_headers(e.stream_id, head, end_stream=not parts and not r.trailers)
                if parts or r.trailers:
                    waiting[e.stream_id] = (parts, r.trailers)
            elif isinstance(e, h2.events.StreamReset):
                streams.pop(e.stream_id, None)
                waiting.pop(e.stream_id, None)
            elif isinstance(e, h2.events.ConnectionTerminated):
                return
        push()
