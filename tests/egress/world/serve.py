"""All servers of the test's internet, in one process with a thread a connection."""
import concurrent.futures
import os
import shutil
import socket
import ssl
import subprocess
import threading

from . import ca, http, sites, zone
from .dns import Resolver

CANARY_PORT = 8081  # on each address of the host, loopback included: nobody inside may reach it
ECHO, FIRST, SINK, GRPC, CLOSED = 7, 2525, 9, 50051, 444


def listener(address, port, family=None):
    s = socket.socket(family or (socket.AF_INET6 if ":" in address else socket.AF_INET))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if s.family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.bind((address, port))
    s.listen(512)
    return s


def host_sockets():
    return [listener("0.0.0.0", CANARY_PORT), listener("::", CANARY_PORT)]


def plain(address):
    return address[7:] if address.startswith("::ffff:") else address


class Internet:
    def __init__(self, world, host_side):
        self.world, self.host_side = world, host_side
        self.lock = threading.Lock()
        self.events = []
        self.grpc = None
        self.resolver = Resolver(zone.NAMES, self.record)
        self.sites = sites.Sites(world, self.record)

    def record(self, kind, **more):
        with self.lock:
            self.events.append({"kind": kind, **more})

    def asked(self, what, **question):
        if what == "seen":
            with self.lock:
                return list(self.events)
        if what == "clear":
            with self.lock:
                self.events.clear()
            return None
        if what == "grpc":
            return self.start_grpc()
        if what == "zone":
            return self.resolver.set(question["name"], question["record"])
        raise ValueError(f"no such question: {what}")

    # ------------------------------------------------------------ starting

    def start(self):
        self.contexts = ca.contexts(self.world.place, self.world.ca, zone.CERTIFICATE_NAMES)
        self.front = self.contexts[None]
        for c in (self.front, self.contexts["mtls.example.com"]):
            c.sni_callback = self.pick
        self.start_sshd()  # by this thread: the kernel ends it with the thread that made it
        git = threading.Thread(target=self.sites.make_repositories)
        git.start()
        for s in self.host_side:
            self.accept(s, self.canary)
        for address in ("0.0.0.0", "::"):
            for port in (80, 8080):
                self.accept(listener(address, port), self.http)
            for port in (443, 8443):
                self.accept(listener(address, port), self.https)
            self.accept(listener(address, ECHO), self.echo)
            self.accept(listener(address, FIRST), self.speaks_first)
            self.accept(listener(address, SINK), self.sink)
        for address in (zone.RESOLVER4, zone.RESOLVER6, "8.8.8.8", "2001:4860:4860::8888"):
            self.datagrams(address, 53, self.resolver.udp)
            self.accept(listener(address, 53), lambda s, peer: self.resolver.tcp(s))
        udp = zone.NAMES["udp.example.com"]
        for address in (*udp["a"], *udp["aaaa"], zone.NET4 + "10", zone.NET6 + "a", "8.8.8.8", "1.1.1.1", zone.METADATA4):
            for port in (7, 123, 443):
                self.datagrams(address, port, self.udp_echo)
        self.wait_for_sshd()
        git.join()
        return {"canary": CANARY_PORT, "echo": ECHO, "first": FIRST, "sink": SINK, "grpc": GRPC, "closed": CLOSED}

    def accept(self, s, serve):
        def loop():
            while True:
                peer, address = s.accept()
                threading.Thread(target=self.one, args=(serve, peer, address), daemon=True).start()
        threading.Thread(target=loop, daemon=True).start()

    def one(self, serve, s, peer):
        try:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            own = s.getsockname()
            self.record("connect", address=own[0], port=own[1], source=peer[0])
            serve(s, peer)
        except Exception as e:  # whatever clients send
            self.record("error", server=getattr(serve, "__name__", "?"), error=repr(e))
        finally:
            s.close()

    def datagrams(self, address, port, serve):
        s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
        s.bind((address, port))
        threading.Thread(target=serve, args=(s,), daemon=True).start()

    # ------------------------------------------------------------ the simple ones

    def canary(self, s, peer):
        """A service of the host: whoever reads this got where it must not."""
        self.record("canary", address=s.getsockname()[0], source=peer[0])
        s.settimeout(0.2)
        try:
            s.recv(4096)
        except OSError:
            pass
        s.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 12\r\n\r\nHOST-CANARY\n")

    def echo(self, s, peer):
        while data := s.recv(65536):
            s.sendall(data)

    def sink(self, s, peer):
        total = 0
        while data := s.recv(1 << 20):
            total += len(data)
        self.record("sunk", bytes=total)

    def speaks_first(self, s, peer):
        s.sendall(b"220 smtp.example.com ready\r\n")
        f = s.makefile("rb")
        for line in f:
            self.record("line", text=line.decode("latin-1").strip())
            s.sendall(b"250 " + line)
            if line.strip().lower() == b"quit":
                return

    def udp_echo(self, s):
        while True:
            data, peer = s.recvfrom(65536)
            own = s.getsockname()
            self.record("datagram", address=own[0], port=own[1], bytes=len(data))
            s.sendto(data, peer)

    # ------------------------------------------------------------ HTTP and TLS

    def pick(self, s, name, _):
        s.pale_name = name
        s.context = self.contexts.get((name or "").lower(), self.contexts[None])

    def http(self, s, peer):
        http.serve_1(s, s.getsockname(), "http", None, self.sites.answer, self.record)

    def https(self, s, peer):
        own = s.getsockname()
        # A context chosen by the name's callback does not ask for the client's certificate.
        mtls = b"mtls.example.com" in s.recv(4096, socket.MSG_PEEK)
        try:
            t = (self.contexts["mtls.example.com"] if mtls else self.front).wrap_socket(s, server_side=True)
        except OSError as e:
            self.record("tls-error", error=str(e))
            raise
        name = getattr(t, "pale_name", None)
        self.record("tls", sni=name, alpn=t.selected_alpn_protocol(), address=own[0])
        try:
            if t.selected_alpn_protocol() == "h2":
                http.serve_2(t, own, name, self.sites.answer, self.record)
            else:
                http.serve_1(t, own, "https", name, self.sites.answer, self.record)
        finally:
            t.close()

    def start_grpc(self):
        """Only when a test wants it: the library takes a while to load."""
        if self.grpc:
            return
        import grpc

        def one(data, context):
            self.record("grpc", bytes=len(data), metadata=[[k, str(v)] for k, v in context.invocation_metadata()])
            context.set_trailing_metadata((("x-served", "yes"),))
            return data[::-1]

        def many(requests, context):
            for data in requests:
                yield data[::-1]

        handlers = grpc.method_handlers_generic_handler("standin.Echo", {
            "One": grpc.unary_unary_rpc_method_handler(one), "Many": grpc.stream_stream_rpc_method_handler(many)})
        with open(os.path.join(self.world.place, "tls", "good.pem"), "rb") as f:
            both = f.read()
        self.grpc = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        self.grpc.add_generic_rpc_handlers((handlers,))
        self.grpc.add_secure_port(f"[::]:{GRPC}", grpc.ssl_server_credentials([(both, both)]))
        self.grpc.start()

    # ------------------------------------------------------------ ssh

    def start_sshd(self):
        at = os.path.join(self.world.place, "ssh")
        os.mkdir(at)
        for name in ("host", "client"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", f"{at}/{name}"], check=True)
        shutil.copy(at + "/client.pub", at + "/authorized")
        with open(at + "/host.pub") as f, open(at + "/known_hosts", "w") as known:
            known.write("git.example.com,github.com " + f.read())
        with open(at + "/config", "w") as f:
            f.write(f"HostKey {at}/host\nAuthorizedKeysFile {at}/authorized\nStrictModes no\nUsePAM no\nPidFile none\n"
                    "PasswordAuthentication no\nPermitRootLogin yes\nListenAddress 0.0.0.0\nListenAddress ::\n"
                    "ForceCommand PATH=/usr/bin:/bin exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"\n")
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", exist_ok=True)
        log = open(at + "/log", "w")
        subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", at + "/config"], stdin=subprocess.DEVNULL, stdout=log,
                         stderr=log, preexec_fn=die_with_parent, start_new_session=True)

    def wait_for_sshd(self):
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", 22), 1).close()
                return
            except OSError:
                threading.Event().wait(0.01)
        raise RuntimeError("sshd does not come up: see ssh/log")


def die_with_parent():
    import ctypes
    import signal
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
