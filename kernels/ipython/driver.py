"""The kernel `ipython` of a session: the real ipykernel, unmodified, behind the kernel channel.

Runs in the box. Three kinds of process:

- the translator, the first process: it holds the channel (docs/kernel-protocol.md) and speaks Jupyter's
  messaging with ipykernel, over Unix sockets of this box;
- the spawner, its child: everything is imported before it is forked, and it never starts a thread nor zmq,
  so that it can fork one ipykernel after the other within some 50 ms; it is the parent of all that a kernel
  leaves behind, and ends it;
- ipykernel, the spawner's child, leader of a process group of its own.

sys.stdout and sys.stderr of ipykernel stay what they are, text over descriptors 1 and 2, instead of messages: so
what subprocesses print is in order with them, and with displays, before which ipykernel flushes them.

An ipykernel has threads, which no fork would take along: there is no rollback, and no undo.

What of Jupyter's messages has no counterpart in the channel goes out as DATA:
- an update of a display: a bundle of its own, with the entry application/vnd.jupyter.display-update whose
  text is the display's id; the bundle that is updated has application/vnd.jupyter.display-id;
- comm_open, comm_msg, comm_close (widgets), clear_output, and payloads such as that of %load: the entry
  application/vnd.jupyter.message+json, {"msg_type", "content", "metadata", "buffers" (base64)}. There is no way in.
"""
import os
import sys

sys.path[:1] = []  # our own directory; the user's comes when the imports are done

import base64  # noqa: E402
import ctypes  # noqa: E402
import fcntl  # noqa: E402
import gc  # noqa: E402
import json  # noqa: E402
import re  # noqa: E402
import select  # noqa: E402
import shutil  # noqa: E402
import signal  # noqa: E402
import socket  # noqa: E402
import struct  # noqa: E402
import tempfile  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402

EXECUTE, UNDO, COMPLETE, INSPECT, INPUT, RESTART = range(1, 7)
READY, STARTED, DATA, REPLY, ERROR, DONE, BACK, INPUT_WANTED, NOTE, REFUSED = range(16, 26)
MORE, RESULT = 1, 2
OK, FAILED, INTERRUPTED, ENDED = range(4)
PACKET, HEADER = 32768, struct.Struct("<BBHIiII")
DATA_MAX = 64 << 20
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
# What is said of an execution that was asked to be one that can be taken back.
WHY = "IPython's kernel has threads of its own, which a copy of it would not have"
SLOW_S = 3  # how much later an answer may come than the end of what it answers
MESSAGE = "application/vnd.jupyter.message+json"
SHELL, IOPUB, STDIN, CONTROL, HB = range(1, 6)

libc = ctypes.CDLL(None)


def take_channel():
    """Nothing that is started inherits it; ipykernel has none."""
    try:
        channel = socket.socket(fileno=fcntl.fcntl(3, fcntl.F_DUPFD_CLOEXEC, 4))
    except OSError as e:
        sys.exit(f"pale: no kernel channel: descriptor 3: {e.strerror}")
    os.close(3)
    return channel


# ---------------------------------------------------------------- ipykernel

class Streams:
    """A module for ipykernel's outstream_class: the streams that there are."""

    @staticmethod
    def stream(session, thread, name, **_):
        return getattr(sys, f"__{name}__")


def plain_streams():
    for name in "stdout", "stderr":
        stream = getattr(sys, name)
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)


def run_ipykernel(place, key, ready):
    """In the forked child; does not return."""
    import IPython
    from ipykernel.kernelapp import IPKernelApp
    from traitlets.config import Config
    plain_streams()
    sys.modules["pale_streams"] = Streams
    sys.argv = [""]
    numpy = sys.modules.get("numpy")
    if numpy:
        numpy.random.seed()  # or it would be that of each other fork
    config = Config()
    config.IPKernelApp.transport = "ipc"
    config.IPKernelApp.ip = f"{place}/k"
    for name, port in ("shell", SHELL), ("iopub", IOPUB), ("stdin", STDIN), ("control", CONTROL), ("hb", HB):
        config.IPKernelApp[f"{name}_port"] = port
    config.IPKernelApp.connection_file = f"{place}/connection.json"
    config.IPKernelApp.outstream_class = "pale_streams.stream"
    config.IPKernelApp.parent_handle = 1  # 1 is never watched
    config.Session.key = key
    config.HistoryManager.hist_file = ":memory:"
    config.InteractiveShell.colors = "nocolor" if IPython.version_info[0] >= 9 else "NoColor"
    app = IPKernelApp.instance(config=config)
    app.initialize([])
    if app.shell:
        app.shell.events.register("pre_execute", lambda: tell_start(ready))
    wake_by_signals()
    os.write(ready, b"\0")
    app.start()


def tell_start(fd):
    """Before the user's code runs, however it ends: a message would be lost with the process."""
    try:
        os.write(fd, b"\0")
    except OSError:
        pass
    except KeyboardInterrupt:
        # It would be lost here; the code is what it is for.
        threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()


def wake_by_signals():
    """The loop of ipykernel. Its handler of SIGINT, while something is awaited, is run at once, but what
    that leaves to the loop would wait until the loop has something else to do."""
    from tornado.ioloop import IOLoop
    woken, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    IOLoop.current().add_handler(woken, lambda *_: os.read(woken, 4096), IOLoop.READ)


# ---------------------------------------------------------------- the spawner

def children():
    """Of this process."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as f:
            return list(map(int, f.read().split()))
    except OSError:
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as f:
                    if int(f.read().rpartition(")")[2].split()[1]) == os.getpid():
                        found.append(int(name))
            except OSError:
                pass
        return found


def end_children():
    """All of them, and theirs, which become ours."""
    while True:
        for pid in children():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def spawner(door):
    """Forks a kernel for each request of the translator, {place, key}, which comes with a descriptor for the
    kernel: it writes a byte there when it is ready, and when code is about to run. Tells its process, and
    its end, as lines."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    woken, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    kernel = 0

    def tell(**what):
        door.sendall(json.dumps(what).encode() + b"\n")

    while True:
        readable = select.select([door, woken], [], [])[0]
        if woken in readable:
            os.read(woken, 4096)
            while True:
                try:
                    pid, status = os.waitpid(-1, os.WNOHANG)
                except ChildProcessError:
                    break
                if not pid:
                    break
                if pid == kernel:
                    end_children()
                    kernel = 0
                    tell(ended=pid, status=status)
        if door in readable:
            line, fds, _, _ = socket.recv_fds(door, 4096, 1)
            if not line:
                break
            request = json.loads(line)
            kernel = os.fork()
            if kernel == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                os.setpgid(0, 0)
                for fd in door.detach(), woken, wake:
                    os.close(fd)
                os.set_inheritable(fds[0], False)
                sys.path.insert(0, "")
                try:
                    run_ipykernel(request["place"], request["key"].encode(), fds[0])
                finally:
                    os._exit(1)
            os.close(fds[0])
            try:
                os.setpgid(kernel, kernel)
            except OSError:
                pass  # it did, or is dead
            tell(forked=kernel)
    end_children()
    os._exit(0)


# ---------------------------------------------------------------- the channel

class Channel:
    def __init__(self, sock):
        self.sock = sock
        self.parts, self.head = [], None

    def fileno(self):
        return self.sock.fileno()

    def send(self, kind, id=0, value=0, key="", data=b"", flags=0):
        key = key.encode()[:256]
        data = data.encode("utf-8", "replace") if isinstance(data, str) else data
        room = PACKET - HEADER.size - len(key)
        data = memoryview(data)
        while True:
            part, data = data[:room], data[room:]
            more = MORE if len(data) else 0
            self.sock.sendall(HEADER.pack(kind, flags | more, len(key), id, value, len(part), 0) + key + part)
            if not more:
                return

    def receive(self):
        """One packet: kind, id, value, data where a message is whole, None where it is not; EOFError."""
        packet = self.sock.recv(PACKET)
        if not packet:
            raise EOFError
        kind, flags, key_len, id, value, data_len, _ = HEADER.unpack_from(packet)
        head = kind, id, value
        if self.head != head:
            self.parts, self.head = [], head
        self.parts.append(packet[HEADER.size + key_len:HEADER.size + key_len + data_len])
        if flags & MORE:
            return None
        data, self.parts, self.head = b"".join(self.parts), [], None
        return kind, id, value, data


# ---------------------------------------------------------------- the translator

ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
LINE = re.compile(r"^ *(?:Cell|Input) In ?\[\d+\],.*\bline:? (\d+)|^-+> *(\d+)", re.M)


class Execution:
    def __init__(self, id, wanted, silent):
        self.id, self.wanted, self.silent, self.msg_id = id, wanted, silent, None
        self.started = self.begun = self.idle = self.failed = False
        self.reply, self.shown = None, 0


class Ended(Exception):
    """The kernel has."""


class Translator:
    def __init__(self, channel, door, notes):
        import zmq
        from jupyter_client.session import Session
        self.channel, self.door, self.notes = channel, door, notes
        self.zmq, self.Session = zmq, Session
        self.context = zmq.Context()
        self.context.linger = 0
        self.lines = b""
        self.pid, self.place, self.sockets, self.running = 0, None, {}, None

    # ---- the kernel's life

    def told(self):
        """What the spawner says."""
        data = self.door.recv(65536)
        if not data:
            raise EOFError
        *lines, self.lines = (self.lines + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def begin(self):
        """Starts a kernel and waits until it answers."""
        self.place = tempfile.mkdtemp(prefix="ipykernel-")
        self.key = os.urandom(16).hex()
        self.begun, theirs = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        socket.send_fds(self.door, [json.dumps({"place": self.place, "key": self.key}).encode()], [theirs])
        os.close(theirs)
        ready = False
        while not ready:
            readable = select.select([self.door, self.begun], [], [])[0]
            for said in self.told() if self.door in readable else ():
                self.pid = said.get("forked", self.pid)
                if "ended" in said:
                    raise SystemExit("pale: ipykernel does not start")
            ready = self.begun in readable and self.pid and self.take_begun()
        self.session = self.Session(key=self.key.encode())
        self.poller = self.zmq.Poller()
        for port, kind in (SHELL, self.zmq.DEALER), (IOPUB, self.zmq.SUB), (STDIN, self.zmq.DEALER):
            s = self.sockets[port] = self.context.socket(kind)
            if kind == self.zmq.DEALER:
                s.identity = self.session.bsession
            else:
                s.subscribe(b"")
                s.rcvhwm = 0
            s.reconnect_ivl = 5
            s.connect(f"ipc://{self.place}/k-{port}")
            self.poller.register(s, self.zmq.POLLIN)
        for other in self.channel.fileno(), self.door.fileno(), self.begun:
            self.poller.register(other, self.zmq.POLLIN)
        # Only what is said after a subscription has arrived is heard.
        while True:
            self.ask(SHELL, "kernel_info_request", {})
            if self.sockets[IOPUB].poll(20):
                break
        self.sockets[SHELL].poll(5000)
        self.drain()

    def take_begun(self):
        """Whether code is about to run, or was."""
        try:
            return bool(os.read(self.begun, 4096))
        except BlockingIOError:
            return False

    def drain(self):
        """Answers to nothing that is under way."""
        for port in SHELL, IOPUB:
            while self.sockets[port].poll(0):
                self.session.recv(self.sockets[port])

    def close(self):
        for s in self.sockets.values():
            s.close(0)
        self.sockets = {}
        os.close(self.begun)
        shutil.rmtree(self.place, ignore_errors=True)

    def kill(self):
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except OSError:
            pass

    def begin_again(self, id, status):
        self.close()
        self.running = None
        self.begin()
        self.channel.send(BACK, id, status, "fresh")

    def wait_end(self):
        while True:
            for said in self.told():
                if "ended" in said:
                    return said["status"]

    # ---- asking it

    def ask(self, port, kind, content):
        return self.session.send(self.sockets[port], kind, content)["header"]["msg_id"]

    def answer(self, kind, content):
        """The answer to a request while nothing runs; None if there is none."""
        sent = self.ask(SHELL, kind, content)
        end = time.monotonic() + 10
        while time.monotonic() < end:
            for ready, _ in self.poller.poll(100):
                if ready == self.door.fileno():
                    self.take_end()
                elif ready is self.sockets[SHELL]:
                    message = self.session.recv(ready)[1]
                    if message and message["parent_header"].get("msg_id") == sent:
                        return message["content"]
                elif ready is self.sockets[IOPUB]:
                    self.session.recv(ready)
        return None

    def take_end(self):
        for said in self.told():
            if "ended" in said:
                raise Ended(said["status"])

    # ---- executions

    def execute(self, id, wanted, code):
        silent = not code.strip()  # nothing, to warm up: it is not counted
        content = {"code": "None" if silent else code, "silent": silent, "store_history": not silent,
                   "user_expressions": {}, "allow_stdin": True, "stop_on_error": False}
        x = self.running = Execution(id, wanted, silent)
        x.msg_id = self.ask(SHELL, "execute_request", content)
        while self.running:
            for ready, _ in self.poller.poll():
                if ready == self.begun:
                    # Who runs is told when ipykernel does: then an interrupt is not lost.
                    begun = self.take_begun()
                    x.begun |= begun
                    if not begun:  # it has died: the spawner will say how
                        self.poller.unregister(self.begun)
                elif ready == self.door.fileno():
                    self.read_iopub()
                    if x.begun or self.take_begun():
                        self.start(x)
                    self.take_end()
                elif ready == self.channel.fileno():
                    self.take_input(self.channel.receive())
                elif ready is self.sockets[STDIN]:
                    self.want_input(self.session.recv(ready)[1])
                elif ready is self.sockets[SHELL]:
                    message = self.session.recv(ready)[1]
                    if message and message["parent_header"].get("msg_id") == x.msg_id:
                        x.reply = message["content"]
                elif ready is self.sockets[IOPUB]:
                    self.read_iopub()
            if x.idle and (x.reply or not self.reply_comes()):
                self.finish(x)

    def reply_comes(self):
        """Whether there is an answer, or will be soon; not if it has died meanwhile."""
        poller = self.zmq.Poller()
        for one in self.sockets[SHELL], self.door.fileno():
            poller.register(one, self.zmq.POLLIN)
        return any(ready is self.sockets[SHELL] for ready, _ in poller.poll(SLOW_S * 1000))

    def read_iopub(self):
        s = self.sockets[IOPUB]
        while s.poll(0):
            message = self.session.recv(s)[1]
            if message:
                self.show(message)

    def start(self, x):
        if not x.started:
            x.started = True
            self.channel.send(STARTED, x.id, self.pid, "", WHY if x.wanted else "")
            while self.notes:
                self.channel.send(NOTE, x.id, data=self.notes.pop())

    def show(self, message):
        x, kind, content = self.running, message["msg_type"], message["content"]
        own = x and message["parent_header"].get("msg_id") == x.msg_id
        if not x:
            return
        if own and (kind == "execute_input" or x.silent and kind == "status"):
            self.start(x)
        if kind == "status":
            x.idle |= own and content["execution_state"] == "idle"
        elif kind in ("display_data", "execute_result", "update_display_data"):
            bundle = dict(content["data"])
            display = content.get("transient", {}).get("display_id")
            if display:
                update = kind == "update_display_data"
                bundle[f"application/vnd.jupyter.display-{'update' if update else 'id'}"] = str(display)
            self.send_bundle(x, bundle, RESULT if kind == "execute_result" else 0)
        elif kind == "stream":
            os.write(2 if content["name"] == "stderr" else 1, content["text"].encode("utf-8", "replace"))
        elif kind == "error" and own:
            self.fail(x, content)
        elif kind in ("comm_open", "comm_msg", "comm_close", "clear_output"):
            self.pass_on(x, kind, content, message)

    def pass_on(self, x, kind, content, message=None):
        buffers = [base64.b64encode(b).decode() for b in (message or {}).get("buffers", ())]
        self.send_bundle(x, {MESSAGE: {"msg_type": kind, "content": content, "buffers": buffers,
                                       "metadata": (message or {}).get("metadata", {})}})

    def send_bundle(self, x, bundle, flags=0):
        self.start(x)
        x.shown += 1
        for mime, value in bundle.items():
            if not isinstance(value, str):
                value = json.dumps(value)
            elif not mime.startswith("text/") and not mime.endswith(("+xml", "json", "javascript", "-id", "-update")):
                try:
                    value = base64.b64decode(value, validate=True)  # as Jupyter has bytes
                except ValueError:
                    try:
                        value = base64.b64decode(value.replace("\n", ""), validate=True)
                    except ValueError:
                        pass
            value = value.encode("utf-8", "replace") if isinstance(value, str) else value
            if len(value) > DATA_MAX:
                self.channel.send(NOTE, x.id, data=f"{len(value)} bytes of {mime} are more than can be shown")
                continue
            self.channel.send(DATA, x.id, x.shown, mime, value, flags)

    def fail(self, x, content):
        """As IPython has put it, without colours."""
        self.start(x)
        x.failed = content["ename"]
        traceback = ANSI.sub("", "\n".join(content["traceback"])).replace("\0", "\\0").rstrip("\n") + "\n"
        line = LINE.search(traceback)
        self.channel.send(ERROR, x.id, int(line[1] or line[2]) if line else 0, content["ename"],
                          ANSI.sub("", content["evalue"]).replace("\0", "\\0") + "\0" + traceback)

    def finish(self, x):
        reply = x.reply or {"status": "error", "ename": "KeyboardInterrupt"}
        self.start(x)
        ended = False
        for payload in reply.get("payload", ()):
            if payload.get("source") == "ask_exit":
                ended |= not payload.get("keepkernel")
            elif payload.get("source") == "page":
                data = payload.get("data", {})
                self.send_bundle(x, {m: ANSI.sub("", t) if isinstance(t, str) else t for m, t in data.items()})
            else:
                self.pass_on(x, "payload", payload)
        status = {"ok": OK, "error": FAILED}.get(reply["status"], FAILED)
        # What is awaited at the top level, IPython cancels.
        if status == FAILED and (x.failed or reply.get("ename")) in ("KeyboardInterrupt", "CancelledError"):
            status = INTERRUPTED
        self.running = None
        if not ended:
            self.channel.send(DONE, x.id, status)
            return
        self.channel.send(DONE, x.id, ENDED, "0")
        self.kill()
        self.wait_end()
        self.begin_again(x.id, 0)

    # ---- input

    def want_input(self, message):
        x = self.running
        if message and x:
            self.read_iopub()  # what was shown before
            self.start(x)
            self.channel.send(INPUT_WANTED, x.id, int(bool(message["content"].get("password"))),
                              data=message["content"].get("prompt", ""))

    def take_input(self, request):
        if request and request[0] == INPUT:
            _, _, end, line = request
            self.ask(STDIN, "input_reply", {"value": "\x04" if end else line.decode("utf-8", "replace")})

    # ---- requests

    def take(self, request):
        kind, id, value, data = request
        if kind == EXECUTE:
            self.execute(id, bool(value & 1), data.decode("utf-8", "replace"))
        elif kind == UNDO:
            self.channel.send(REFUSED, id, data=WHY)
        elif kind == RESTART:
            self.kill()
            self.wait_end()
            self.begin_again(id, 0)
        elif kind == COMPLETE:
            self.complete(id, value, data.decode("utf-8", "replace"))
        elif kind == INSPECT:
            self.inspect(id, value, data.decode("utf-8", "replace"))

    def complete(self, id, cursor, code):
        got = self.answer("complete_request", {"code": code, "cursor_pos": cursor})
        if not got or got.get("status") != "ok":
            self.channel.send(REFUSED, id, data="ipykernel does not answer" if not got else "it failed")
            return
        self.channel.send(REPLY, id, 0, "application/json", json.dumps(
            {"matches": got["matches"], "start": got["cursor_start"], "end": got["cursor_end"]}))

    def inspect(self, id, cursor, code):
        got = self.answer("inspect_request", {"code": code, "cursor_pos": cursor, "detail_level": 0})
        if not got or got.get("status") != "ok":
            self.channel.send(REFUSED, id, data="ipykernel does not answer" if not got else "it failed")
            return
        text = got["data"].get("text/plain", "") if got.get("found") else ""
        self.channel.send(REPLY, id, 0, "text/plain", ANSI.sub("", text))

    def serve(self):
        while True:
            request = None
            try:
                for ready, _ in self.poller.poll():
                    if ready == self.channel.fileno():
                        request = self.channel.receive()
                        if request:
                            self.take(request)
                        break
                    if ready == self.door.fileno():
                        self.take_end()
                    elif ready == self.begun:
                        if not self.take_begun():
                            self.poller.unregister(self.begun)
                    elif ready is self.sockets.get(STDIN):
                        self.session.recv(ready)  # of a thread, which nobody can answer
                    else:
                        self.drain()
                        break
            except Ended as e:
                if request and request[0] in (COMPLETE, INSPECT):
                    self.channel.send(REFUSED, request[1], data="ipykernel has died")
                self.begin_again(self.running.id if self.running else 0, e.args[0])


# ---------------------------------------------------------------- the beginning

def preload(names):
    """What the user wants to have imported; what does not work is told with the first execution."""
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    notes = []
    for name in names:
        try:
            __import__(name)
        except (Exception, SystemExit) as e:
            notes.append(f"cannot import {name}: {type(e).__name__}: {e}")
    return notes


def main(arguments):
    names = []
    arguments = iter(arguments)
    for argument in arguments:
        option, _, value = argument.partition("=")
        if option == "--import":
            names = [n for n in (value or next(arguments, "")).split(",") if n]
        elif option != "--no-rollback":
            sys.exit(f"pale: unknown argument: {argument}")
    channel = Channel(take_channel())
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")  # there is no debugger here to be warned of
    try:
        import IPython
        import ipykernel.kernelapp
        import jupyter_client.session  # noqa: F401
    except ImportError as e:
        sys.exit(f"pale: the kernel ipython needs ipykernel: {e}; install it for {sys.executable} (python3-ipykernel, "
                 "or pip install ipykernel)")
    notes = preload(names)
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        channel.sock.close()
        try:
            spawner(theirs)
        finally:
            os._exit(1)
    theirs.close()
    translator = Translator(channel, ours, notes)
    translator.begin()
    version = sys.version.split()[0]
    channel.send(READY, 0, 1, "ipython", f"IPython {IPython.__version__}, ipykernel {ipykernel.__version__}, Python {version}")
    try:
        translator.serve()
    except (EOFError, ConnectionError):
        pass
    # The supervisor has gone, or the spawner.
    translator.kill()
    ours.close()
    translator.close()
    os.waitpid(pid, 0)


main(sys.argv[1:])
