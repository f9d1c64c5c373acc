"""The HTTP engine by itself (http_door.c): starts it with a policy, and speaks through it."""
import json
import os
import queue
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time

from world.ca import DAY, NOW, Authority

NAME = "api.example.com"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Door:
    """doors: name -> (kind, host, port of the host, the server's port on loopback)."""

    def __init__(self, program, policy, doors, secrets=(), place=None, env=None):
        self.place = place or Place()
        self.policy = self.place.path("policy.yaml")
        with open(self.policy, "w") as f:
            f.write(policy)
        self.ports = {name: free_port() if name[0] != "-" else 0 for name in doors}
        args = [program, self.policy, self.place.ca]
        for name, (kind, host, port, to) in doors.items():
            args.append(f"{self.ports[name]}:{kind}:{host}:{port}:{to}")
        args.append("--")
        for placeholder, value in secrets:
            args += [placeholder, value]
        self.process = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **(env or {})})
        self.events = queue.Queue()
        pem = ""
        for line in self.process.stdout:
            if line == "ready\n":
                break
            pem += line
        self.ca = self.place.path(f"box-{self.process.pid}.pem")
        with open(self.ca, "w") as f:
            f.write(pem)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                self.events.put(json.loads(line))

    def event(self, what="request", timeout=5, **fields):
        """The next one of this kind that has these fields."""
        end = time.monotonic() + timeout
        while True:
            e = self.events.get(timeout=max(0.01, end - time.monotonic()))
            if e["what"] == what and all(e[k] == v for k, v in fields.items()):
                return e

    def drain(self):
        while not self.events.empty():
            self.events.get()

    def memory(self):
        self.process.send_signal(signal.SIGUSR1)
        return self.event("memory")

    def rules(self, policy):
        path = self.place.path("policy2.yaml")
        with open(path, "w") as f:
            f.write(policy)
        self.process.stdin.write(path + "\n")
        self.process.stdin.flush()
        return self.event("rules")

    def connect(self, name, alpn=None, host=NAME, timeout=10, verify=True):
        """A socket; with TLS unless alpn is None."""
        s = socket.create_connection(("127.0.0.1", self.ports[name]), timeout=timeout)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if alpn is None:
            return s
        c = ssl.create_default_context(cafile=self.ca)
        if not verify:
            c.check_hostname, c.verify_mode = False, ssl.CERT_NONE
        if alpn:
            c.set_alpn_protocols(alpn)
        return c.wrap_socket(s, server_hostname=host)

    def close(self):
        """The program's exit status."""
        self.process.stdin.close()
        try:
            return self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class Place:
    """A directory with the servers' certificates."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="pale-http.")
        authority = Authority()
        self.ca = self.path("ca.pem")
        authority.write(self.ca)
        self.good = authority.leaf(self.path("good.pem"), [NAME])
        self.expired = authority.leaf(self.path("expired.pem"), [NAME], NOW - 9 * DAY, NOW - DAY)
        self.other = authority.leaf(self.path("other.pem"), ["other.example.org"])
        self.stranger = Authority("A stranger").leaf(self.path("stranger.pem"), [NAME])

    def path(self, name):
        return os.path.join(self.dir, name)

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)


def read_all(s):
    data = b""
    try:
        while chunk := s.recv(65536):
            data += chunk
    except ConnectionResetError:
        data += b"<reset>"
    return data


def read_answer(s):
    """Status, headers (lower case) and body of one HTTP/1 answer; the socket stays usable."""
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = s.recv(65536)
        if not chunk:
            return None, {}, data
        data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = {}
    for line in lines[1:]:
        name, _, value = line.partition(": ")
        headers[name.lower()] = value
    status = int(lines[0].split()[1])
    if "content-length" in headers:
        while len(body) < int(headers["content-length"]):
            body += s.recv(65536)
    elif headers.get("transfer-encoding") == "chunked":
        while b"0\r\n" not in body or not body.endswith(b"\r\n\r\n"):
            body += s.recv(65536)
    return status, headers, body
