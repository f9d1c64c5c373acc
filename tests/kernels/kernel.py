"""The supervisor's part of the kernel channel (docs/kernel-protocol.md), for tests of the drivers, and TAP.

A driver is started as in a box, with a packet socket as descriptor 3 and pipes for its output, but
without a box. What it printed before it sent a message is taken before the message, as the supervisor
does it.
"""
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback

EXECUTE, UNDO, COMPLETE, INSPECT, INPUT, RESTART = range(1, 7)
READY, STARTED, DATA, REPLY, ERROR, DONE, BACK, INPUT_WANTED, NOTE, REFUSED = range(16, 26)
MORE, RESULT = 1, 2
PACKET, HEADER = 32768, struct.Struct("<BBHIiII")
NAMES = {v: k for k, v in list(globals().items()) if k.isupper() and isinstance(v, int) and 16 <= v <= 25}

must_work = os.environ.get("PALE_MUST_WORK", "").split(",")
number = failed = 0


def check(what, ok, detail=""):
    global number, failed
    number += 1
    failed += not ok
    print(f"{'ok' if ok else 'not ok'} {number} - {what}")
    if not ok and detail != "":
        print("\n".join("# " + line[:600] for line in str(detail).splitlines()[:40]))
    sys.stdout.flush()
    return bool(ok)


def same(what, got, want):
    return check(what, got == want, f"got  {got!r}\nwant {want!r}")


def skip(what, why, ability=None):
    """Loud, and a failure where the machine was said to have it."""
    global number, failed
    number += 1
    bad = ability in must_work
    failed += bad
    print(f"{'not ok' if bad else 'ok'} {number} - {what}" + (f": {why}" if bad else f" # SKIP {why}"))


def case(function):
    """Runs it at once; an exception is a failed test, and the others still run."""
    wanted = os.environ.get("PALE_KERNEL_CASE")
    if wanted and wanted != function.__name__:
        return function
    try:
        function()
    except Exception:
        check(function.__name__.replace("_", " "), False, traceback.format_exc())
    return function


def done():
    print(f"1..{number}")
    sys.exit(failed > 0)


class Message:
    def __init__(self, kind, flags, id, value, key, data):
        self.kind, self.flags, self.id, self.value, self.key, self.data = kind, flags, id, value, key, data

    @property
    def text(self):
        return self.data.decode()

    def __repr__(self):
        return f"{NAMES.get(self.kind, self.kind)}(id={self.id}, value={self.value}, key={self.key!r}, " \
               f"flags={self.flags}, data={self.data[:300]!r})"


class Execution:
    """What came from EXECUTE to DONE, or to BACK if it died."""

    def __init__(self, id):
        self.id, self.messages = id, []
        self.out = self.err = b""
        self.pid = None

    def all(self, kind):
        return [m for m in self.messages if m.kind == kind]

    def first(self, kind):
        return next((m for m in self.messages if m.kind == kind), None)

    def bundles(self):
        """[{MIME type: data}], the result as well."""
        found = {}
        for m in self.all(DATA):
            found.setdefault(m.value, {})[m.key] = m.data
        return [found[n] for n in sorted(found)]

    @property
    def result(self):
        """The text of the value of the last expression."""
        return next((m.text for m in self.all(DATA) if m.flags & RESULT and m.key == "text/plain"), None)

    @property
    def outcome(self):
        return getattr(self.first(DONE), "value", None)

    @property
    def armed(self):
        m = self.first(STARTED)
        return bool(m) and m.key == "armed"

    @property
    def why(self):
        return self.first(STARTED).text

    @property
    def error(self):
        m = self.first(ERROR)
        return m and (m.key, *m.text.split("\0", 1))

    def __repr__(self):
        return "\n".join([f"stdout {self.out[-1500:]!r}", f"stderr {self.err[-3000:]!r}", *map(repr, self.messages)])


class Kernel:
    def __init__(self, command, cwd=None, env=None, ready=True, timeout=20):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.place = cwd or tempfile.mkdtemp(prefix="pale-kernel.")
        self.made = cwd is None
        self.timeout = timeout
        self.socket = ours
        fd = theirs.fileno()

        def child():
            os.setsid()
            os.dup2(fd, 3)
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": self.place, "LANG": "C.UTF-8", **(env or {})}
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, pass_fds=(3,), close_fds=True, cwd=self.place,
                                        env=environment, preexec_fn=child)
        theirs.close()
        self.pipes = {self.process.stdout.fileno(): "out", self.process.stderr.fileno(): "err"}
        for pipe in self.pipes:
            os.set_blocking(pipe, False)
        self.current = Execution(0)  # who gets what is printed
        self.parts = []
        self.last_id = 0
        self.draining = True
        try:
            self.ready = self.wait(READY) if ready else None
        except BaseException:
            self.close()
            raise

    # ---- messages

    def send(self, kind, id=0, value=0, data=b""):
        if isinstance(data, str):
            data = data.encode()
        room = PACKET - HEADER.size
        while True:
            part, data = data[:room], data[room:]
            self.socket.sendall(HEADER.pack(kind, MORE if data else 0, 0, id, value, len(part), 0) + part)
            if not data:
                return

    def drain(self):
        for pipe in list(self.pipes):
            while True:
                try:
                    data = os.read(pipe, 1 << 16)
                except BlockingIOError:
                    break
                if not data:
                    del self.pipes[pipe]
                    break
                name = self.pipes[pipe]
                setattr(self.current, name, getattr(self.current, name) + data)

    def receive(self, timeout=None):
        """The next message, or None if there is no other end any more."""
        end = time.monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            left = end - time.monotonic()
            if left < 0:
                raise TimeoutError(f"no message; so far\n{self.current!r}")
            readable = select.select([self.socket, *(self.pipes if self.draining else ())], [], [], left)[0]
            if self.socket not in readable:
                self.drain()
                continue
            packet = self.socket.recv(1 << 16)
            if self.draining:
                self.drain()
            if not packet:
                return None
            kind, flags, key_len, id, value, data_len, zero = HEADER.unpack_from(packet)
            if (zero or len(packet) > PACKET or key_len > 256 or HEADER.size + key_len + data_len != len(packet)):
                raise ValueError(f"not a packet: {packet[:100]!r}")
            key = packet[HEADER.size:HEADER.size + key_len].decode()
            data = packet[HEADER.size + key_len:]
            head = kind, id, value, key
            if self.parts and self.parts[0] != head:
                self.parts = []
            if not self.parts:
                self.parts = [head]
            self.parts.append(data)
            if flags & MORE:
                continue
            data, self.parts = b"".join(self.parts[1:]), []
            return Message(kind, flags, id, value, key, data)

    def wait(self, *kinds, timeout=None):
        """The next message of one of the kinds; all go to the current execution."""
        while True:
            m = self.receive(timeout)
            if m is None:
                raise EOFError(f"the kernel has gone; so far\n{self.current!r}")
            self.current.messages.append(m)
            if m.kind in kinds:
                return m

    # ---- what a session does

    def start(self, code, rollback=False):
        """Sends EXECUTE, and waits for STARTED."""
        self.last_id += 1
        self.current = Execution(self.last_id)
        self.send(EXECUTE, self.last_id, int(rollback), code)
        self.current.pid = self.wait(STARTED).value
        return self.current

    def finish(self, timeout=None):
        """Waits for DONE, or BACK."""
        x = self.current
        m = self.wait(DONE, BACK, timeout=timeout)
        if m.kind == DONE and m.value == 3:
            self.wait(BACK, timeout=timeout)
        return x

    def run(self, code, rollback=False, timeout=None):
        self.start(code, rollback)
        return self.finish(timeout)

    def armed(self, code, timeout=None):
        return self.run(code, True, timeout)

    def interrupt(self, sig=signal.SIGINT):
        os.killpg(self.current.pid, sig)

    def value(self, code, rollback=False):
        """The result's text."""
        x = self.run(code, rollback)
        return x.result if x.outcome == 0 else repr(x)

    def ask(self, kind, *kinds, value=0, data=b""):
        self.last_id += 1
        self.send(kind, self.last_id, value, data)
        return self.wait(*kinds)

    def undo(self):
        return self.ask(UNDO, BACK, REFUSED)

    def restart(self):
        return self.ask(RESTART, BACK)

    def close(self, timeout=20):
        """The supervisor goes; everything else has to. Returns what is left, which it ends."""
        if self.socket.fileno() < 0:
            return []
        self.socket.close()
        end = time.monotonic() + timeout
        while time.monotonic() < end and self.process.poll() is None:
            self.drain()
            time.sleep(0.005)
        left = []
        if self.process.poll() is None:
            left = [self.process.pid]
            self.process.kill()
            self.process.wait()
        while time.monotonic() < end:
            others = session_of(self.process.pid)
            if not others:
                break
            time.sleep(0.01)
        else:
            left += others
        for pid in session_of(self.process.pid):
            os.kill(pid, signal.SIGKILL)
        self.pipes = {}
        self.process.stdout.close()
        self.process.stderr.close()
        if self.made:
            subprocess.run(["rm", "-rf", self.place], check=False)
        return left

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


def stat_of(pid):
    """Name, state, parent, group, session, ... as in proc(5)."""
    with open(f"/proc/{pid}/stat") as f:
        text = f.read()
    name, _, rest = text[text.index("(") + 1:].rpartition(")")
    return [name, *rest.split()]


def session_of(sid):
    """Processes of a session that are alive."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = stat_of(pid)
        except OSError:
            continue
        if int(fields[4]) == sid and fields[1] not in "ZX":
            found.append(int(pid))
    return found


def below(pid):
    """A process and all that it has started, and theirs; the youngest last."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = stat_of(name)
        except OSError:
            continue
        if fields[1] not in "ZX":
            parents[int(name)] = int(fields[2])
    found, new = [], [pid]
    while new:
        found += new
        new = [p for p, parent in parents.items() if parent in new]
    return found


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return bool(condition())
