"""HTTP/2 through the engine: streams, trailers, gRPC, floods. usage: test_http2.py HTTP-DOOR"""
import json
import resource
import shutil
import subprocess
import sys
import time

import h2.events
import h2.exceptions
import h2.settings

import tap
from door import NAME, Door, Place
from http2_peers import Client, Server
from tap import case, check, same, skip

POLICY = """
pale: 1
network:
  allow:
  - {host: api.example.com, protocol: tls, intercept: true, methods: [GET, HEAD, POST], paths: ["/**"]}
  - {host: api.example.com, protocol: http, ports: [80, 50051]}
  deny:
  - {host: api.example.com, paths: ["/private/**"], reason: "use the mirror"}
"""


place = Place()
server = Server(place.good)
plain = Server()
door = Door(sys.argv[1], POLICY, {"tls": ("tls", NAME, 443, server.port), "clear": ("http", NAME, 80, plain.port),
                                  "nobody": ("tls", NAME, 443, 1)}, place=place)


@case
def requests_and_answers():
    for name, scheme in (("tls", "https"), ("clear", "http")):
        c = Client(door, name, name == "tls")
        door.drain()
        status, body, trailers = c.get("/echo?a=b", scheme=scheme, extra=[("x-own", "1")])
        got = json.loads(body)["headers"]
        same(f"{name}: a request arrives as it was sent", (status, got[":path"], got[":authority"], got["x-own"]),
             (200, "/echo?a=b", NAME, "1"))
        same(f"{name}: its trailers come back", trailers.get("x-trailer"), "yes")
        e = door.event(path="/echo?a=b")
        same(f"{name}: is told", (e["outcome"], e["status"], e["path"], e["method"]),
             ("allowed", 200, "/echo?a=b", "GET"))
        status, body, _ = c.get("/private/x", scheme=scheme, extra=[("accept", "application/json")])
        same(f"{name}: a denied path is refused", (status, c.headers.get("x-pale-blocked")), (403, "policy"))
        same(f"{name}: with the reason", json.loads(body)["reason"], "use the mirror")
        same(f"{name}: the connection is usable after", c.get("/echo", scheme=scheme)[0], 200)
        i = c.request("/echo", end=False, method="POST", scheme=scheme)
        for _ in range(4):
            c.c.send_data(i, b"x" * 10000)
        c.c.send_headers(i, [("x-check", "yes")], end_stream=True)
        c.flush()
        status, body, _ = c.answer(i)
        same(f"{name}: a body with trailers", (json.loads(body)["length"], json.loads(body)["trailers"]),
             (40000, {"x-check": "yes"}))
        i = c.request("/bidi", end=False, method="POST", scheme=scheme)
        for word in (b"one", b"two", b"three"):
            c.c.send_data(i, word)
            c.flush()
            for e in c.read(lambda e: isinstance(e, h2.events.DataReceived)):
                got = e
            same(f"{name}: both ways at once: {word}", got.data, b"<" + word + b">")
        c.c.end_stream(i)
        c.flush()
        same(f"{name}: and its end", c.answer(i)[2], {"x-trailer": "yes"})
        status, body, _ = c.get("/big?3000000", scheme=scheme)
        same(f"{name}: a large answer", (status, len(body)), (200, 3000000))
        same(f"{name}: a stream that the server resets", c.get("/reset", scheme=scheme)[0], "reset 11")
        same(f"{name}: interim answers without end", c.get("/hints-without-end", scheme=scheme)[0], "reset 2")
        open_streams = {c.request("/echo", scheme=scheme) for _ in range(50)}
        for e in c.read(lambda e: not open_streams):
            if isinstance(e, h2.events.StreamEnded):
                open_streams.discard(e.stream_id)
        same(f"{name}: fifty streams at once", open_streams, set())
        c.close()


@case
def what_is_not_for_this_host():
    for what, more, want in (
            ("another authority", {"authority": "evil.example.net"}, 421),
            ("another port", {"authority": NAME + ":8443"}, 421),
            ("a Host that differs", {"extra": [("host", "evil.example.net")]}, 400),
            ("another scheme", {"scheme": "http"}, 400),
            ("a method that no rule has", {"method": "DELETE"}, 403),
            ("a method in small letters", {"method": "get"}, 400),
            ("many headers for another method", {"method": "POST", "extra": [("x-http-method-override", "POST")] * 5}, 400),
            ("an encoded dot segment", {"path": "/a/%2e%2e/private/x"}, 400),
            ("another method in a header", {"method": "POST", "extra": [("x-http-method-override", "DELETE")]}, 403)):
        c = Client(door, "tls")
        before = server.streams
        path = more.pop("path", "/echo")
        same(f"{what} is refused", c.get(path, **more)[0], want)
        same(f"{what}: the server has not seen it", server.streams, before)
        c.close()
    for what, fields in (("CONNECT", [(":method", "CONNECT"), (":authority", "evil.example.net:443")]),
                         ("extended CONNECT", [(":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "https"),
                                               (":authority", NAME), (":path", "/x")]),
                         ("Transfer-Encoding", [(":method", "GET"), (":scheme", "https"), (":authority", NAME),
                                                (":path", "/x"), ("transfer-encoding", "chunked")]),
                         ("a CR in a value", [(":method", "GET"), (":scheme", "https"), (":authority", NAME),
                                              (":path", "/x"), ("a", "b\r\nc: d")]),
                         ("a blank in the path", [(":method", "GET"), (":scheme", "https"), (":authority", NAME),
                                                  (":path", "/x HTTP/1.1")]),
                         ("no path", [(":method", "GET"), (":scheme", "https"), (":authority", NAME)])):
        c = Client(door, "tls")
        before = server.streams
        i = c.c.get_next_available_stream_id()
        c.c.send_headers(i, fields, end_stream=True)
        c.flush()
        status = c.answer(i)[0]
        check(f"{what} is refused", str(status).startswith(("reset", "goaway")) or status == 400 or status == 403, status)
        same(f"{what}: the server has not seen it", server.streams, before)
        c.close()


@case
def servers_that_go():
    c = Client(door, "nobody")
    status, body, _ = c.get("/x")
    check("nobody there: 502 that says why", status == 502 and b"ECONNREFUSED" in body, (status, body))
    c.close()
    server.streams, server.goaway_after = 0, 1
    c = Client(door, "tls")
    same("the last answer before GOAWAY", c.get("/echo")[0], 200)
    seen = [e for e in c.read(lambda e: isinstance(e, h2.events.ConnectionTerminated))]
    check("GOAWAY comes through", bool(seen) and isinstance(seen[-1], h2.events.ConnectionTerminated), seen)
    server.goaway_after = None
    c.close()


@case
def floods():
    def ends(what, act, limit):
        c = Client(door, "tls")
        before, n = server.streams, 0
        try:
            while n < limit:
                act(c)
                c.flush()
                n += 1
        except (OSError, h2.exceptions.ProtocolError):
            pass
        c.s.settimeout(10)
        try:
            while c.s.recv(65536):
                pass
        except OSError:
            pass
        check(f"{what}: the connection ends", n <= limit, n)
        c.close()
        return n, server.streams - before

    def reset(c):
        i = c.c.get_next_available_stream_id()
        c.c.send_headers(i, [(":method", "GET"), (":scheme", "https"), (":authority", NAME), (":path", "/slow")])
        c.c.reset_stream(i)

    sent, seen = ends("rapid reset", reset, 3000)
    check("rapid reset: the server was spared", seen < 1000, (sent, seen))
    m = door.memory()
    check("rapid reset: memory stays", m["bytes"] < 8 << 20, m)
    started = time.monotonic()
    ends("settings", lambda c: c.c.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 70000}) or
         c.s.sendall(b"\0\0\0\4\0\0\0\0\0" * 1000), 200)
    ends("ping", lambda c: c.s.sendall(b"\0\0\x08\6\0\0\0\0\0abcdefgh" * 1000), 200)
    ends("continuation", lambda c: c.s.sendall(
        (b"\0\0\1\1\0\0\0\0\1\x82" if not hasattr(c, "begun") else b"") + b"\0\0\1\x09\0\0\0\0\1\x84" * 100) or
        setattr(c, "begun", 1), 100)
    check("the floods cost little", time.monotonic() - started < 60, time.monotonic() - started)
    # A large field in the table, named again and again by one byte.
    c = Client(door, "tls")
    try:
        block = b"\x82\x87\x84\x41\x0f" + NAME.encode() + b"\x40\x01x\x7f\x81\x1e" + b"y" * 4000 + b"\xbe" * 8000
        c.s.sendall(len(block).to_bytes(3, "big") + b"\1\5\0\0\0\1" + block)
        status = c.answer(1)[0]
    except h2.exceptions.ProtocolError as e:
        status = "reset" if "RST_STREAM" in str(e) else repr(e)  # this client knows nothing of a stream 1
    check("an HPACK bomb is refused", "goaway" in str(status) or "reset" in str(status), status)
    c.close()
    c = Client(door, "tls")
    i = c.request("/echo", extra=[("x-long", "y" * 9000)] * 20)
    check("too large headers are refused", c.answer(i)[0] in (431, "reset 1", "reset 2", "goaway 1"), "")
    c.close()
    c = Client(door, "tls")
    same("and others are served", c.get("/echo")[0], 200)
    c.close()
    m = door.memory()
    check("memory stays", m["bytes"] < 8 << 20, m)


@case
def back_pressure():
    c = Client(door, "tls")
    for _ in range(10):
        c.request("/big?20000000")
    time.sleep(1)
    m = door.memory()
    check("answers that nobody reads wait at the server", m["bytes"] < 8 << 20, m)
    c.close()


@case
def memory_that_runs_out():
    with open(sys.argv[1], "rb") as f:
        if b"__asan_init" in f.read():
            return skip("memory that runs out", "a sanitizer's own does")
    mine = Door(sys.argv[1], POLICY, {"tls": ("tls", NAME, 443, server.port)}, place=place)
    resource.prlimit(mine.process.pid, resource.RLIMIT_DATA, (20 << 20, 20 << 20))
    clients = []
    for _ in range(40):
        try:
            clients.append(Client(mine, "tls"))
            for _ in range(6):
                clients[-1].request("/big?3000000")
        except (OSError, h2.exceptions.ProtocolError):
            pass  # some have to end
    m = mine.memory()
    check("memory is full", m["bytes"] > 12 << 20, m)
    for c in clients:
        c.close()
    got = None
    for _ in range(50):
        time.sleep(0.2)
        try:
            c = Client(mine, "tls")
            got = c.get("/echo")[0]
            c.close()
        except (OSError, h2.exceptions.ProtocolError):
            pass  # what ended has not been seen yet
        if got == 200:
            break
    same("and others are served after", got, 200)
    same("the engine is whole", mine.close(), 0)


@case
def real_clients():
    if not shutil.which("h2load"):
        return skip("h2load", "it is not there", "nghttp2")
    done = subprocess.run(["h2load", "-n", "2000", "-c", "4", "-m", "50", f"--connect-to=127.0.0.1:{door.ports['tls']}",
                           f"https://{NAME}/echo"], capture_output=True, text=True, timeout=100)
    check("h2load: 2000 requests", "2000 succeeded" in done.stdout, done.stdout + done.stderr)
    done = subprocess.run(["curl", "-sS", "--http2", "--cacert", door.ca, "--connect-to",
                           f"{NAME}:443:127.0.0.1:{door.ports['tls']}", "-w", "\n%{http_version} %{http_code}",
                           f"https://{NAME}/echo"], capture_output=True, text=True)
    check("curl", done.stdout.endswith("\n2 200"), done.stdout + done.stderr)


@case
def grpc_both_ways():
    try:
        import grpc
    except ImportError:
        return skip("gRPC", "python3-grpcio is not there", "grpc")
    from concurrent import futures

    class Handlers(grpc.GenericRpcHandler):
        def service(self, details):
            if details.method == "/t.T/Unary":
                return grpc.unary_unary_rpc_method_handler(lambda request, context: b"got " + request)
            if details.method == "/t.T/Chat":
                return grpc.stream_stream_rpc_method_handler(lambda requests, context: (b"re " + r for r in requests))
            if details.method == "/t.T/Fail":
                def fail(request, context):
                    context.set_trailing_metadata((("x-why", "because"),))
                    context.abort(grpc.StatusCode.NOT_FOUND, "not here")
                return grpc.unary_unary_rpc_method_handler(fail)

    with open(place.good, "rb") as f:
        pem = f.read()
    with open(place.ca, "rb") as f:
        ca = f.read()
    backend = grpc.server(futures.ThreadPoolExecutor(8))
    backend.add_generic_rpc_handlers((Handlers(),))
    tls = backend.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(pem, pem)]))
    clear = backend.add_insecure_port("127.0.0.1:0")
    backend.start()
    mine = Door(sys.argv[1], POLICY, {"tls": ("tls", NAME, 443, tls), "clear": ("http", NAME, 50051, clear)}, place=place)
    with open(mine.ca, "rb") as f:
        ca = f.read()
    options = (("grpc.ssl_target_name_override", NAME), ("grpc.default_authority", NAME))
    for name, channel in (("tls", grpc.secure_channel(f"127.0.0.1:{mine.ports['tls']}",
                                                      grpc.ssl_channel_credentials(ca), options)),
                          ("clear", grpc.insecure_channel(f"127.0.0.1:{mine.ports['clear']}", options))):
        same(f"{name}: one call", channel.unary_unary("/t.T/Unary")(b"x", timeout=10), b"got x")
        large = b"y" * 3000000
        same(f"{name}: a large one", len(channel.unary_unary("/t.T/Unary")(large, timeout=20)), len(large) + 4)
        words = []

        def talk():
            for i in range(5):
                yield b"%d" % i
                for _ in range(200):
                    if len(words) > i:
                        break
                    time.sleep(0.01)

        for answer in channel.stream_stream("/t.T/Chat")(talk(), timeout=20):
            words.append(answer)
        same(f"{name}: a conversation", words, [b"re %d" % i for i in range(5)])
        try:
            channel.unary_unary("/t.T/Fail")(b"", timeout=10)
            check(f"{name}: a failure", False)
        except grpc.RpcError as e:
            same(f"{name}: a failure's status and trailers", (e.code(), e.details(), dict(e.trailing_metadata()).get("x-why")),
                 (grpc.StatusCode.NOT_FOUND, "not here", "because"))
        channel.close()
    backend.stop(0)
    same("the engine is whole", mine.close(), 0)


@case
def slow_heads():
    """A head that is begun and not finished does not hold a connection for ever."""
    quick = Door(sys.argv[1], POLICY, {"tls": ("tls", NAME, 443, server.port), "clear": ("http", NAME, 80, plain.port)}, place=place,
                 env={"HTTP_DOOR_HEAD_MS": "600"})
    for name, scheme in (("tls", "https"), ("clear", "http")):
        c = Client(quick, name, name == "tls")
        same(f"{name}: a request", c.get("/echo", scheme=scheme)[0], 200)
        time.sleep(1)
        same(f"{name}: and another one, late", c.get("/echo", scheme=scheme)[0], 200)
        i = c.c.get_next_available_stream_id()
        c.s.sendall(b"\0\0\2\1\1" + i.to_bytes(4, "big") + b"\x82\x87")  # GET, https; no END_HEADERS
        begun, ended = time.monotonic(), False
        while not ended and time.monotonic() - begun < 5:
            try:
                c.s.sendall(b"\0\0\1\x09\0" + i.to_bytes(4, "big") + b"\x90")  # CONTINUATION: one more field
                c.s.settimeout(0.25)
                ended = c.s.recv(65536) == b""
            except TimeoutError:
                pass
            except OSError:
                ended = True
        took = time.monotonic() - begun
        check(f"{name}: a head that does not end is not waited for", ended and 0.4 < took < 4, took)
        for what in "request", "connection":
            check(f"{name}: which is told of the {what}", "did not come in time" in quick.event(what, outcome="blocked")["detail"])
    same("the engine is whole", quick.close(), 0)


same("the engine is whole at the end", door.close(), 0)
place.remove()
tap.done()
