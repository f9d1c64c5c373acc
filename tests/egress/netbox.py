"""The broker behind a bare network namespace (netbox.c), in a standin.World."""
import json
import os
import subprocess
import tempfile
import textwrap
import time

# What the snippets that run inside are given.
PRELUDE = """
import errno, json, os, socket, struct, sys, time
class Reset:
    # A refusal may be faster than connect() is.
    def recv(self, n):
        raise ConnectionResetError()
    def sendall(self, data):
        pass
    settimeout = shutdown = close = setblocking = sendall
def dial(host, port, family=0, timeout=10):
    for f, t, p, _, a in socket.getaddrinfo(host, port, family, socket.SOCK_STREAM):
        s = socket.socket(f, t, p)
        s.settimeout(timeout)
        try:
            s.connect(a)
        except ConnectionResetError:
            return Reset()
        return s
def all_of(s):
    data = bytearray()
    try:
        while part := s.recv(1 << 20):
            data += part
    except ConnectionResetError:
        data += b"<reset>"
    except TimeoutError:
        data += b"<timeout>"
    return bytes(data)
def say(value):
    print(json.dumps(value))
def hello(name, version=b"\\x03\\x01", extra=b""):
    sni = b"" if name is None else (lambda n: struct.pack(">HHHBH", 0, len(n) + 5, len(n) + 3, 0, len(n)) + n)(name)
    ext = sni + extra
    body = b"\\x03\\x03" + bytes(32) + b"\\x00" + b"\\x00\\x02\\x13\\x01" + b"\\x01\\x00" + struct.pack(">H", len(ext)) + ext
    return b"\\x01" + len(body).to_bytes(3, "big") + body
def record(message):
    return b"\\x16\\x03\\x01" + struct.pack(">H", len(message)) + message
"""


class Result:
    def __init__(self, code, out, err, events):
        self.code, self.out, self.err, self.events = code, out, err, events

    @property
    def said(self):
        """What the snippet said, line by line."""
        return [json.loads(line) for line in self.out.splitlines()]

    def told(self, **want):
        return [e for e in self.events if e["kind"] == "event" and all(e[k] == v for k, v in want.items())]

    def count(self, **want):
        return sum(e["count"] for e in self.told(**want))

    def one(self, **want):
        found = self.told(**want)
        return found[0] if len(found) == 1 else {"found": found, "of": self.events[-8:], "err": self.err}

    def __repr__(self):
        events = "\n".join(json.dumps({k: v for k, v in e.items() if v}) for e in self.events[-30:])
        return f"exit {self.code}\n{self.out[-3000:]}\n{self.err[-3000:]}\n{events}"


class Box:
    """One start of the broker with a command inside; `with` it, or run()."""

    def __init__(self, world, netbox, broker, network, command, redirect=False, secrets=(), files=None):
        self.world = world
        self.place = tempfile.mkdtemp(prefix="netbox.", dir=world.place)
        os.chmod(self.place, 0o777)
        self.config = os.path.join(self.place, "config")
        self.events_file = os.path.join(self.place, "events")
        self.pid_file = os.path.join(self.place, "pid")
        self.more = {"secrets": list(secrets)} if secrets else {}
        if os.geteuid() == 0 and not world.user:
            self.more.update(uid=65534, gid=65534)
        self.write(network)
        if isinstance(command, str):
            command = ["/usr/bin/python3", "-c", PRELUDE + textwrap.dedent(command)]
        if files:  # the broker's limit on descriptors
            wrap = os.path.join(self.place, "broker")
            with open(wrap, "w") as f:
                f.write(f'#!/bin/sh\nulimit -n {files}\nexec "{broker}"\n')
            os.chmod(wrap, 0o755)
            broker = wrap
        flags = (["-r"] if redirect else []) + ["-p", self.pid_file]
        self.process = subprocess.Popen([*world.prefix, netbox, *flags, broker, self.config, self.events_file, *command],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        errors="replace")

    def write(self, network):
        with open(self.config + ".new", "w") as f:
            json.dump({"network": network, **self.more}, f)
        os.chmod(self.config + ".new", 0o644)
        os.rename(self.config + ".new", self.config)

    def change(self, network):
        """New rules; returns when they are in force."""
        before = self.lines().count('"ready"')
        self.write(network)
        self.process.send_signal(10)
        self.until(lambda: self.lines().count('"ready"') > before, "the new rules")

    def lines(self):
        try:
            with open(self.events_file) as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def until(self, what, name, seconds=20):
        for _ in range(seconds * 50):
            if what():
                return
            time.sleep(0.02)
        raise TimeoutError(name + "\n" + self.lines()[-2000:])

    @property
    def pid(self):
        with open(self.pid_file) as f:
            return int(f.read())

    def events(self):
        return [json.loads(line) for line in self.lines().splitlines() if line.endswith("}")]

    def end(self, timeout=60):
        try:
            out, err = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
            err += "\n<the test's time is over>"
        return Result(self.process.returncode, out, err, self.events())


def maker(world, netbox, broker):
    def run(network, command, timeout=60, **more):
        return Box(world, netbox, broker, network, command, **more).end(timeout)
    return run
