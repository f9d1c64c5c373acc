"""Both ends of HTTP/2, with Python's h2."""
import json
import socket
import ssl
import threading

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions

from door import NAME


class Server:
    """Answers a stream when it has ended, or at once for /bidi; counts what it saw."""

    def __init__(self, pem=None):
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=200)
        self.port = self.socket.getsockname()[1]
        self.resets = self.streams = 0
        self.goaway_after = None
        self.context = None
        if pem:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(pem)
            self.context.set_alpn_protocols(["h2"])
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            s, _ = self.socket.accept()
            threading.Thread(target=self.serve, args=(s,), daemon=True).start()

    def serve(self, s):
        try:
            if self.context:
                s = self.context.wrap_socket(s, server_side=True)
            self.speak(s)
        except (OSError, h2.exceptions.ProtocolError):
            pass
        finally:
            s.close()

    def speak(self, s):
        c = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        c.initiate_connection()
        s.sendall(c.data_to_send())
        requests, bodies, trailers, pending = {}, {}, {}, {}

        def push(i):
            """As much of an answer as the windows take."""
            data, end = pending[i]
            while data:
                n = min(c.local_flow_control_window(i), c.max_outbound_frame_size, len(data))
                if n <= 0:
                    break
                c.send_data(i, data[:n])
                data = data[n:]
            pending[i] = (data, end)
            if not data:
                del pending[i]
                if end:
                    c.send_headers(i, [("x-trailer", "yes"), ("x-length", str(len(bodies.get(i, b""))))], end_stream=True)

        while data := s.recv(65536):
            for e in c.receive_data(data):
                if isinstance(e, h2.events.RequestReceived):
                    self.streams += 1
                    requests[e.stream_id], bodies[e.stream_id] = dict(e.headers), b""
                    self.headers = requests[e.stream_id]
                    if requests[e.stream_id][":path"] == "/bidi":
                        c.send_headers(e.stream_id, [(":status", "200")])
                    if requests[e.stream_id][":path"] == "/reset":
                        c.reset_stream(e.stream_id, h2.errors.ErrorCodes.ENHANCE_YOUR_CALM)
                elif isinstance(e, h2.events.DataReceived):
                    c.acknowledge_received_data(e.flow_controlled_length, e.stream_id)
                    bodies[e.stream_id] += e.data
                    if requests[e.stream_id][":path"] == "/bidi":
                        c.send_data(e.stream_id, b"<" + e.data + b">")
                elif isinstance(e, h2.events.TrailersReceived):
                    trailers[e.stream_id] = dict(e.headers)
                elif isinstance(e, h2.events.StreamReset):
                    self.resets += 1
                    pending.pop(e.stream_id, None)
                elif isinstance(e, h2.events.WindowUpdated):
                    for i in list(pending):
                        push(i)
                elif isinstance(e, h2.events.StreamEnded):
                    i = e.stream_id
                    path = requests[i][":path"]
                    if path == "/reset":
                        continue
                    if path == "/bidi":
                        c.send_headers(i, [("x-trailer", "yes")], end_stream=True)
                        continue
                    if path == "/hints":
                        c.send_headers(i, [(":status", "103"), ("link", "</a.css>")])
                    if path == "/hints-without-end":
                        for _ in range(100):
                            c.send_headers(i, [(":status", "103"), ("link", "</a.css>")])
                    if path == "/slow":
                        continue
                    c.send_headers(i, [(":status", "200"), ("content-type", "application/json")])
                    if path.startswith("/big?"):
                        pending[i] = (b"x" * int(path[5:]), True)
                    else:
                        pending[i] = (json.dumps({"headers": requests[i], "length": len(bodies[i]),
                                                  "trailers": trailers.get(i)}).encode(), True)
                    push(i)
                    if self.goaway_after is not None and self.streams >= self.goaway_after:
                        c.close_connection()
            s.sendall(c.data_to_send())


class Client:
    def __init__(self, door, name, tls=True, window=None):
        self.s = door.connect(name, ["h2"] if tls else None)
        self.c = h2.connection.H2Connection(h2.config.H2Configuration(
            header_encoding="utf-8", validate_outbound_headers=False, normalize_outbound_headers=False))
        self.c.initiate_connection()
        self.events = []
        self.flush()

    def flush(self):
        self.s.sendall(self.c.data_to_send())

    def request(self, path, end=True, method="GET", authority=NAME, extra=(), scheme="https"):
        i = self.c.get_next_available_stream_id()
        self.c.send_headers(i, [(":method", method), (":scheme", scheme), (":authority", authority), (":path", path),
                                *extra], end_stream=end)
        self.flush()
        return i

    def read(self, until, timeout=10):
        """Events until one for which until(event) is true."""
        self.s.settimeout(timeout)
        while True:
            while self.events:
                e = self.events.pop(0)
                if isinstance(e, h2.events.DataReceived):
                    self.c.acknowledge_received_data(e.flow_controlled_length, e.stream_id)
                yield e
                if until(e):
                    return
            self.flush()
            data = self.s.recv(65536)
            if not data:
                return
            self.events += self.c.receive_data(data)
            self.flush()

    def answer(self, i):
        """Status (or the code of a reset), body, trailers."""
        status, body, trailers = None, b"", {}
        for e in self.read(lambda e: getattr(e, "stream_id", 0) == i and
                           isinstance(e, (h2.events.StreamEnded, h2.events.StreamReset)) or
                           isinstance(e, h2.events.ConnectionTerminated)):
            if isinstance(e, h2.events.ConnectionTerminated):
                return f"goaway {e.error_code}", body, trailers
            if getattr(e, "stream_id", 0) != i:
                continue
            if isinstance(e, h2.events.ResponseReceived):
                status = int(dict(e.headers)[":status"])
                self.headers = dict(e.headers)
            elif isinstance(e, h2.events.DataReceived):
                body += e.data
            elif isinstance(e, h2.events.TrailersReceived):
                trailers = dict(e.headers)
            elif isinstance(e, h2.events.StreamReset):
                return f"reset {e.error_code}", body, trailers
        return status, body, trailers

    def get(self, path, **more):
        return self.answer(self.request(path, **more))

    def close(self):
        self.s.close()
