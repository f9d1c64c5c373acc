"""Pale's kernel for Python: runs the code of a session, in its box.

    python3 driver.py [--import NAME[,NAME...]] [--no-rollback] [--serve SOCKET,LIBRARY]

speaks docs/kernel-protocol.md over descriptor 3, a packet socket to the supervisor. Standard library
only, CPython 3.8 and later, Linux. Nothing in here guards the host: that is the box's work, and to the
supervisor all of this is hostile. What is guarded, against accidents and not against malice, is the
session: no code that a user may reasonably run leaves it without an answer.

Processes. The state of a session is the memory of a process, so the state of a moment is kept by a fork:

    base ─ holder ─ active         The active process reads the channel and runs the code. The base
                                   never does: it has the imports and nothing else, and forks the first
                                   active process (a zygote's fork does it when there is something to
                                   read), and another when there is nothing better. It is the
                                   holder of the state before the first execution: there is no other.

    arm()    The active process forks and goes on as the child; the parent is now a holder, asleep in
             wait() with the state as it is. Dies the child, the holder is the active process again.
             This is done ahead, while nobody waits: while idle there are two holders, "before" (the
             state before the last execution, for UNDO) and "spare" (the present state, for the next
             one). With EXECUTE the spare becomes "before", and the old "before" is killed.
    EXECUTE  STARTED tells the process's id; it leads its own group, so the supervisor can interrupt
             or kill what the execution started along with it.
    death    Its holder is a subreaper (prctl(2)), so what a dead process had started, however deep
             or detached, becomes the holder's child, and the holder had none before: it kills all of
             its children until there are none, and says BACK held; or kept, if it is the spare. A walk
             over the descendants could not do this: once the process is dead nothing tells its orphans
             from other processes.
             Without a holder the same happens in the base, which says BACK fresh; or held, if what
             died was the first execution. (A box that is used once never has a holder of its own.)

The child has to be the same program that the parent was, hence the C library's fork() rather than
os.fork(), whose hooks are there to make a difference: they seed `random` anew, and forget asyncio's
loop. What the hooks would repair cannot be broken, as there is one thread. Hence also unsound(): what a
fork does not copy (threads, child processes, timers), or what the child would change for its parent too
(sockets, pipes, files open for writing, much shared memory), means that there is no way back, and
STARTED says why. The offsets of files that are open for reading, and a little shared memory (semaphores
of multiprocessing), are put back. A program can still tell: os.getpid() and time.process_time() are
those of a new process after each execution that can be taken back.

OpenBLAS and its like start threads when numpy is imported, and that would be the end of rollback; so
OPENBLAS_NUM_THREADS and its like are set to 1 unless the policy sets them or --no-rollback is given.
A module of --import that leaves threads all the same cannot be imported in the base: threads do not
survive the fork. The base begins anew, and each fresh process imports that module itself.

--serve makes of this process a zygote: it imports what it should, and then is forked into one box after
the other (become_kernel(); src/isolation/process/serve.c is the library that does it). Each fork is the
base of a session like any other, with the channel as its descriptor 3.

All fresh processes of one base, and all forks of a zygote, have its hash seed, which cannot be changed;
reseed() changes the rest.

Signals. SIGINT is the user's while the user's code runs, and only remembered otherwise (guarded()):
before the first line it still interrupts, after the last it is forgotten; it never ends the driver. A
background task of asyncio goes on when a cell awaits: between two executions nothing of the user's runs
but threads, so an idle session is idle, and its state is that after the last execution.

Self-defence. The code here has names and builtins of its own, bound before the user's code runs; its
module is not in sys.modules, `__main__` is the user's. The channel and copies of stdout and stderr have
high numbers. If anything fails that cannot, the process ends, and its holder is sound.
"""
import _ast
import _thread
import builtins
import gc
import io
import sys
from _signal import (  # without the enums of signal.py, which take longer than the rest of this file
    ITIMER_PROF, ITIMER_REAL, ITIMER_VIRTUAL, SIG_BLOCK, SIG_DFL, SIG_SETMASK, SIGALRM, SIGCHLD, SIGINT, SIGKILL,
    default_int_handler, getitimer, getsignal, pthread_sigmask, setitimer, signal, sigpending, sigwait, valid_signals)
from os import (
    O_ACCMODE, O_PATH, O_RDONLY, P_ALL, WEXITED, WNOHANG, WNOWAIT, _exit, close, devnull, dup2, environ, environb,
    execv, fork, fstat, get_blocking, getpid, getppid, kill, killpg, listdir, lseek, makedev, open as open_fd, path,
    read, readlink, set_blocking, set_inheritable, setpgid, sysconf, urandom, waitid, waitpid, write)
from stat import S_IFMT, S_ISCHR, S_ISDIR, S_ISREG
from sys import getrecursionlimit, gettrace, setrecursionlimit, settrace
from time import sleep

# Functions look builtins up here: a copy, whatever becomes of the user's.
__builtins__ = dict(vars(builtins))
__name__ = "pale"
modules = sys.modules

EXECUTE, UNDO, COMPLETE, INSPECT, INPUT, RESTART = range(1, 7)
READY, STARTED, DATA, REPLY, ERROR, DONE, BACK, INPUT_WANTED, NOTE, REFUSED = range(16, 26)
MORE, RESULT = 1, 2  # flags
OK, FAILED, INTERRUPTED, ENDED = range(4)  # values of DONE
PACKET, HEADER, KEY, MESSAGE = 32768, 20, 256, 8 << 20  # bytes

TEXT_MAX = 1 << 20  # characters of a text/plain
TRACEBACK_MAX = 1 << 16
CELLS_MAX = 8 << 20  # of the sources that are kept for tracebacks
SHARED_MAX = 1 << 20  # bytes of shared memory that are put back
REQUEST_SECONDS = 2  # for completion and inspection
FRAMES = 1000  # of the recursion limit, for the driver's own work
SOON = 0.01  # seconds after the first execution: many a session ends, and nothing needs to be held

PR_SET_CHILD_SUBREAPER = 36
THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS",
                    "NUMEXPR_MAX_THREADS", "NUMEXPR_NUM_THREADS")
HARMLESS = {makedev(1, n) for n in (3, 5, 7, 8, 9)}  # null, zero, full, random, urandom

# What the processes of a session tell one another: words of shared memory.
ACTIVE, BEFORE, SPARE = 0, 1, 2  # process ids, or 0
REQUEST = 3  # id of the request under way
QUIET = 4  # the active process ends on purpose
PARTIAL = 5  # id of the message that is half read
TAKEN = 6  # messages
BASE = 7  # what the base can go back to is...
PRESENT, PREVIOUS = 1, 2  # the present state; the state before the last execution; 0: neither


class state:
    """Of this process."""
    pid = 0
    id = 0  # of the execution
    cell = ""
    running = False
    ahead = True  # arm while idle
    shown = 0  # displays of this execution
    why = "nothing has been run"  # UNDO is not possible
    notes = []
    imported = []  # modules that were imported ahead
    interrupted = False
    limited = False
    handler = default_int_handler  # the user's, for SIGINT
    recursion = 0  # the user's limit if it is too low for us
    future = 0  # compiler flags of from __future__ import
    skip = 0  # id of a message whose rest is of no use
    cells = {}  # name: entry of linecache
    cells_size = 0
    loop = None
    displayed = set()  # ids of figures of this execution
    descriptors = {}  # number: identity, of those that are ours
    native = 0  # threads that are none of Python's
    files = []  # (descriptor, offset) to put back
    scanned = None  # size of the address space when shared memory was last looked for
    regions = []  # of it, (address, length)
    saved = []  # (address, bytes) to put back


# ---------------------------------------------------------------- the channel

sending = _thread.RLock()  # threads of the user's may display something


def send(kind, id, value=0, key="", data=b"", flags=0):
    """One message. Without a supervisor there is nothing left to do."""
    if isinstance(data, str):
        data = data.encode("utf-8", "backslashreplace")
    key = key.encode("utf-8", "backslashreplace")[:KEY]
    room = PACKET - HEADER - len(key)
    at = 0
    with sending:
        while True:
            part = data[at:at + room]
            at += len(part)
            more = at < len(data)
            head = b"%c%c%b%b%b%b\0\0\0\0" % (
                kind, flags | more, len(key).to_bytes(2, "little"), id.to_bytes(4, "little"),
                value.to_bytes(4, "little", signed=True), len(part).to_bytes(4, "little"))
            try:
                write(channel, head + key + part)
            except OSError:
                _exit(1)
            if not more:
                return


def receive():
    """The next message: kind, id, value, data."""
    parts = []
    try:
        while True:
            packet = read(channel, PACKET)
            if len(packet) < HEADER:
                _exit(0)  # the supervisor is gone
            kind, flags = packet[0], packet[1]
            start = HEADER + int.from_bytes(packet[2:4], "little")
            id = int.from_bytes(packet[4:8], "little")
            if state.skip and id == state.skip:
                if not flags & MORE:
                    state.skip = page[PARTIAL] = 0
                continue
            state.skip = 0
            if kind != INPUT:
                page[REQUEST] = id
                page[TAKEN] = page[TAKEN] + 1 & 0xffff
            parts.append(packet[start:])
            if flags & MORE:
                page[PARTIAL] = id  # should this process die, the next one passes over the rest
                continue
            if len(parts) > 1:
                page[PARTIAL] = 0
            return kind, id, int.from_bytes(packet[8:12], "little", signed=True), b"".join(parts)
    except OSError:
        _exit(1)  # closed by the user's code
    except BaseException:  # interrupted in input()
        state.skip = page[PARTIAL]
        raise


def contents(name):
    fd = open_fd(name, O_RDONLY)
    try:
        parts = []
        while True:
            part = read(fd, 1 << 16)
            if not part:
                return b"".join(parts)
            parts.append(part)
    finally:
        close(fd)


# ---------------------------------------------------------------- processes

def children():
    try:
        return [int(pid) for pid in contents(f"/proc/self/task/{getpid()}/children").split()]
    except FileNotFoundError:  # a kernel without CONFIG_PROC_CHILDREN
        pass
    found, me = [], getpid()
    for name in listdir("/proc"):
        if name.isdigit():
            try:
                if int(contents(f"/proc/{name}/stat").rpartition(b")")[2].split()[1]) == me:
                    found.append(int(name))
            except OSError:
                pass
    return found


def end_process(pid):
    if pid:
        try:
            kill(pid, SIGKILL)
        except ProcessLookupError:
            pass


def end_children():
    """Ends all of them, and those that become ours when their parents end."""
    flags = 0
    while True:
        for pid in children():
            end_process(pid)
        try:
            while waitpid(-1, flags)[0]:
                flags = WNOHANG
        except ChildProcessError:
            return
        flags = 0


def wait_any():
    """Which child is dead, and not reaped: its id is still its own."""
    return waitid(P_ALL, 0, WEXITED | WNOWAIT).si_pid


def set_subreaper(on):
    return libc is not None and prctl(PR_SET_CHILD_SUBREAPER, on, 0, 0, 0) == 0


def shared_regions():
    """Memory that a child's writes would change in its parent."""
    found = []
    for line in contents("/proc/self/maps").splitlines():
        fields = line.split(None, 5)
        if fields[1][3:4] == b"s" and fields[1][1:2] == b"w":
            start, end = (int(n, 16) for n in fields[0].split(b"-"))
            if start not in our_regions:
                name = fields[5].decode("utf-8", "replace") if len(fields) > 5 else "anonymous"
                found.append((start, end - start, name))
    return found


def descriptors():
    found = []
    for name in listdir("/proc/self/fd"):
        try:
            found.append((int(name), fstat(int(name))))
        except OSError:  # that of the list itself
            pass
    return found


def own_descriptors(found):
    for fd, st in found:
        state.descriptors[fd] = st.st_dev, st.st_ino


def judge(fd, st):
    """A descriptor that is not ours: why it rules a rollback out, or its offset."""
    name = readlink(f"/proc/self/fd/{fd}")
    if S_ISCHR(st.st_mode) and st.st_rdev in HARMLESS:
        return None
    if not (S_ISREG(st.st_mode) or S_ISDIR(st.st_mode)) or name.startswith("anon_inode:"):
        what = {0o140000: "a socket", 0o010000: "a pipe", 0o020000: "a device"}.get(S_IFMT(st.st_mode), name)
        return f"{what} is open (descriptor {fd})"
    info = dict(line.split(b":", 1) for line in contents(f"/proc/self/fdinfo/{fd}").splitlines())
    flags = int(info[b"flags"], 8)
    if flags & O_ACCMODE != O_RDONLY and not flags & O_PATH:
        return f"a file is open for writing: {path.basename(name)} (descriptor {fd})"
    return None if flags & O_PATH else int(info[b"pos"])


def count_threads():
    """Besides this one, also those that Python does not know of."""
    threads = len(listdir("/proc/self/task")) - 1
    if threads and threads != state.native and not _thread._count():
        # They may have been joined, and not be quite gone.
        for _ in range(30):
            sleep(0.0001)
            threads = len(listdir("/proc/self/task")) - 1
            if not threads:
                break
        state.native = threads
    return threads


def unsound():
    """Why a fork would not be all of the state; or None, and what has to be put back is in `state`."""
    if libc is None:
        return "rollback needs ctypes, which this Python lacks"
    threads = count_threads()
    if threads:
        return "another thread is running" if threads == 1 else f"{threads} other threads are running"
    try:
        waitid(P_ALL, 0, WEXITED | WNOHANG | WNOWAIT)
    except ChildProcessError:
        pass
    else:
        # subprocess reaps what a dropped Popen left behind only when it starts the next one.
        clean = getattr(modules.get("subprocess"), "_cleanup", None)
        if clean:
            clean()
        left = len(children())
        if left:
            return "there is a child process" if left == 1 else f"there are {left} child processes"
    if any(getitimer(t)[0] for t in (ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF)):
        return "a timer is running"
    files = []
    for fd, st in descriptors():
        # Copies of stdout and stderr are as harmless as those are.
        if (st.st_dev, st.st_ino) not in map(state.descriptors.get, (fd, 1, 2)):
            verdict = judge(fd, st)
            if isinstance(verdict, str):
                return verdict
            if verdict is not None:
                files.append((fd, verdict))
    size, resident, mapped = map(int, contents("/proc/self/statm").split()[:3])
    if resident - mapped > memory_pages // 2:  # whoever changes all of it needs it twice
        return f"it takes more than half of the memory: {(resident - mapped) * 4096 >> 20} MiB"
    if size != state.scanned:  # no mapping was added, but for one that replaced another of its size
        state.regions = shared_regions()
        state.scanned = int(contents("/proc/self/statm").split()[0])
    for _, _, name in state.regions:
        if name.startswith("/dev/") and not name.startswith(("/dev/shm/", "/dev/zero")):
            return f"a device is mapped: {name}"
    total = sum(length for _, length, _ in state.regions)
    if total > SHARED_MAX:
        return f"{total >> 20} MiB of memory are shared: {state.regions[0][2]}"
    state.files = files
    state.saved = [(start, ctypes.string_at(start, length)) for start, length, _ in state.regions]
    return None


def arm():
    """Leaves this process behind as a holder, and goes on in a child.

    None in the child; a text if it was not possible; True in the holder, when the state is back.
    """
    try:
        why = unsound()
    except OSError as e:
        why = f"what a fork would not copy cannot be told: {e}"
    if why:
        return why
    if not set_subreaper(1):
        return "prctl() is not allowed to make a subreaper"
    me = getpid()
    page[SPARE] = me
    # No handler of the user's runs in the holder; and were SIGCHLD ignored, it would not be told.
    mask = pthread_sigmask(SIG_BLOCK, valid_signals())
    handler = getsignal(SIGCHLD)
    if handler is not SIG_DFL:
        signal(SIGCHLD, SIG_DFL)
    child = same_fork()
    if child == 0:
        setpgid(0, 0)
        page[ACTIVE] = state.pid = getpid()
        move_processes(me, state.pid)
    elif child < 0:
        page[SPARE] = 0
        set_subreaper(0)
    else:
        hold(child)
        while sigpending():  # nothing that came meanwhile was meant for the process that this one is now
            sigwait(sigpending())
    if handler is not SIG_DFL and handler is not None:
        signal(SIGCHLD, handler)
    pthread_sigmask(SIG_SETMASK, mask)
    if child < 0:
        return "no process can be made: the limit of the box is reached"
    return True if child else None


def hold(child):
    try:
        while True:
            pid = wait_any()
            if pid == child:
                break
            waitpid(pid, 0)
        # All at once, and while the dead process keeps its number from being given to another.
        try:
            killpg(child, SIGKILL)
        except OSError:
            pass
        status = waitpid(child, 0)[1]
    except ChildProcessError:
        status = 0
    end_children()
    put_back()
    set_subreaper(0)
    me = page[ACTIVE] = getpid()
    kept = page[SPARE] == me  # it died between two executions
    page[SPARE] = 0
    if page[BEFORE] == me:
        page[BEFORE] = 0
        state.why = "it was taken back already"
    mend_streams()
    say_back("kept" if kept else "held", status)


def put_back():
    """What the dead process has changed of what it shared with this one."""
    for fd, offset in state.files:
        try:
            lseek(fd, offset, 0)
        except OSError:
            pass
    for start, data in state.saved:
        ctypes.memmove(start, data, len(data))


def say_back(key, status):
    id, quiet = page[REQUEST], page[QUIET]
    page[REQUEST] = page[QUIET] = 0
    state.skip = page[PARTIAL]
    send(BACK, id, 0 if quiet else status, key)


def move_processes(old, new):
    """Objects of multiprocessing that are not started yet work in the process that made them only."""
    for process in list(getattr(modules.get("multiprocessing.process"), "_dangling", ())):
        if getattr(process, "_parent_pid", None) == old:
            process._parent_pid = new


def drop_holders():
    before, spare = page[BEFORE], page[SPARE]
    page[BEFORE] = page[SPARE] = page[BASE] = 0
    end_process(before)
    end_process(spare)


def start_over(id):
    """Ends this process, with nobody but the base to take its place."""
    page[REQUEST], page[QUIET] = id, 1
    drop_holders()
    _exit(0)


def exists(pid):
    try:
        kill(pid, 0)
    except OSError:
        return False
    return True


def base():
    """Returns in each fresh process; the base itself stays in here."""
    mask = pthread_sigmask(SIG_BLOCK, valid_signals())  # kill(-1) of the user's is not meant for the base
    set_subreaper(1)
    failures = 0
    # A zygote was looked at before it forked, and its forks have nothing open but their streams.
    holds = not later and (zygote is not None or unsound() is None)
    if zygote:
        # Most of the pool's boxes only wait: one process does it. Somebody reads what has come, later.
        select([channel], (), ())
    while True:
        page[ACTIVE] = page[BEFORE] = page[SPARE] = 0
        page[BASE] = PRESENT if holds else 0
        taken = page[TAKEN]
        child = fork()
        if child == 0:
            setpgid(0, 0)
            page[ACTIVE] = state.pid = getpid()
            signal(SIGINT, note_interrupt)
            pthread_sigmask(SIG_SETMASK, mask)
            reseed()
            return
        status = 0
        while True:
            pid = wait_any()
            for i in (BEFORE, SPARE):
                if page[i] == pid:  # while the number is still its own
                    page[i] = 0
            if pid == page[ACTIVE]:
                try:
                    killpg(pid, SIGKILL)  # see hold()
                except OSError:
                    pass
                status = waitpid(pid, 0)[1]
            else:
                waitpid(pid, 0)
            # Whoever is first in the line of the three is a child of the base: one of them will
            # be active, or the base is told of its death.
            if not any(page[i] and exists(page[i]) for i in (ACTIVE, BEFORE, SPARE)):
                break
        end_children()
        failures = failures + 1 if page[TAKEN] == taken else 0
        if failures > 3:  # it dies of itself
            _exit(1)
        if page[BASE]:
            put_back()
            mend_streams()
            state.why = "it was taken back already"
        say_back("kept" if page[BASE] == PRESENT else "held" if page[BASE] else "fresh", status)


def reseed():
    """What was made before the fork and must not be the same in each process. The hash seed stays."""
    for name in ("random", "numpy.random"):
        seed = getattr(modules.get(name), "seed", None)
        if seed:
            seed()
    # In another process namespace the fork may have a number that OpenSSL takes for its own, and it
    # then sees no fork.
    add = getattr(modules.get("_ssl"), "RAND_add", None)
    if add:
        add(urandom(32), 32)
    current = getattr(modules.get("multiprocessing.process"), "current_process", None)
    if current:
        current().authkey = urandom(32)


# ---------------------------------------------------------------- signals

def note_interrupt(signum, frame):
    state.interrupted = True


def guarded(call, *args):
    """Calls what may run the user's code, with the user's SIGINT: result and exception."""
    result = error = None
    try:
        try:
            signal(SIGINT, state.handler)
            if state.interrupted:
                raise KeyboardInterrupt
            result = call(*args)
        except BaseException as e:
            error = e
        quiet()
    except KeyboardInterrupt as e:  # between the last instruction of the user's and quiet()'s first
        quiet()
        error = e
    if gettrace() is not None:
        settrace(None)
    if getrecursionlimit() < FRAMES:
        state.recursion = getrecursionlimit()
        setrecursionlimit(FRAMES)
    return result, error


def quiet():
    """From here on neither SIGINT nor SIGALRM raises anything."""
    while True:
        try:
            state.limited = False
            handler = signal(SIGINT, note_interrupt)
            if handler is not note_interrupt:
                state.handler = default_int_handler if handler is None else handler
            return
        except KeyboardInterrupt:
            pass


def on_alarm(signum, frame):
    if state.limited:
        raise KeyboardInterrupt


def limit(call, *args):
    state.limited = True
    return call(*args)


def limited(call, *args):
    """guarded(), but nobody will interrupt it: it gets a time limit. On no account may a property
    that hangs make the session hang."""
    if getitimer(ITIMER_REAL)[0]:
        return None, TimeoutError("a timer of the session's is running")
    handler = signal(SIGALRM, on_alarm)
    try:
        setitimer(ITIMER_REAL, REQUEST_SECONDS)
        return guarded(limit, call, *args)
    finally:
        setitimer(ITIMER_REAL, 0)
        signal(SIGALRM, SIG_DFL if handler is None else handler)


# ---------------------------------------------------------------- streams

def open_stream(fd, name):
    """As the interpreter does it: closing it does not close the descriptor."""
    raw = io.FileIO(fd, "w", closefd=False)
    raw.name = f"<{name}>"
    stream = io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", "backslashreplace", line_buffering=True)
    stream.mode = "w"
    return stream


def take_streams():
    """Line-buffered UTF-8, whatever the environment says, and no exception for a lone surrogate."""
    for fd, name in ((1, "stdout"), (2, "stderr")):
        stream = open_stream(fd, name)
        setattr(state, name, stream)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    state.stdin = sys.stdin = sys.__stdin__ = io.TextIOWrapper(
        io.BufferedReader(Stdin()), "utf-8", "surrogateescape")


def flush(*streams):
    for stream in streams or (state.stdout, state.stderr):
        try:
            stream.flush()
        except Exception:  # closed, or of another make
            pass
    if c_stdout is not None:
        c_flush(c_stdout)  # what C libraries have printed


def flush_all():
    """Also what the user's code put in place of the streams: it may do anything."""
    flush(getattr(sys, "stdout", None), getattr(sys, "stderr", None))


def mend_streams():
    """After the user's code: descriptors 0 to 2 are open and block, and our streams work."""
    for fd in (0, 1, 2):
        try:
            if not get_blocking(fd):  # asyncio does this, to all who share it
                set_blocking(fd, True)
            continue
        except OSError:
            pass
        try:
            if fd:
                dup2(spares[fd], fd)
            elif open_fd(devnull, O_RDONLY) == 0:
                set_inheritable(0, True)
        except OSError:
            pass
    for fd, name in ((1, "stdout"), (2, "stderr")):
        old = getattr(state, name)
        try:
            closed = old.closed
        except ValueError:  # detached
            closed = True
        if closed:
            new = open_stream(fd, name)
            setattr(state, name, new)
            for where in (name, f"__{name}__"):
                if getattr(sys, where, None) is old:
                    setattr(sys, where, new)


def asking():
    """Whether this is the one place from which the channel may be read besides the main loop."""
    return state.running and getpid() == state.pid and _thread.get_ident() == main_thread


def ask(prompt, hidden=False):
    """A line from whoever uses the session, or None at the end of what there is."""
    flush_all()
    send(INPUT_WANTED, state.id, int(hidden), data=prompt)
    while True:
        kind, id, value, data = receive()
        if kind == INPUT and id == state.id:
            return None if value & 1 else data.decode("utf-8", "surrogateescape")


class Stdin(io.RawIOBase):
    """What a program reads from sys.stdin is asked for line by line."""
    rest = b""

    def readable(self):
        return True

    def fileno(self):
        return 0

    def readinto(self, buffer):
        if not self.rest:
            line = ask("") if asking() else None
            if line is None:
                return 0
            self.rest = line.encode("utf-8", "surrogateescape") + b"\n"
        n = min(len(buffer), len(self.rest))
        buffer[:n] = self.rest[:n]
        self.rest = self.rest[n:]
        return n


def input(prompt="", /):
    """Read a string from whoever uses the session. The trailing newline is stripped.

    The prompt string, if given, is shown to them. At the end of input raise EOFError.
    """
    if sys.stdin is not state.stdin:  # the program has put something else there
        return real_input(prompt)
    if not asking():
        raise EOFError("input() works in the main thread of a cell only")
    line = ask(str(prompt))
    if line is None:
        raise EOFError("EOF when reading a line")
    return line


def getpass(prompt="Password: ", stream=None, **ignored):
    """Prompt for a password, which is not echoed."""
    line = ask(str(prompt), hidden=True) if asking() else None
    if line is None:
        raise EOFError
    return line


# ---------------------------------------------------------------- display

# Types whose instances have nothing but a repr, which is most of them.
PLAIN = frozenset((int, float, complex, bool, str, bytes, bytearray, list, tuple, dict, set, frozenset, range,
                   type, type(None), type(len), type(lambda: 0), type(sys)))
REPRS = (("_repr_html_", "text/html"), ("_repr_markdown_", "text/markdown"), ("_repr_svg_", "image/svg+xml"),
         ("_repr_png_", "image/png"), ("_repr_jpeg_", "image/jpeg"), ("_repr_pdf_", "application/pdf"),
         ("_repr_latex_", "text/latex"), ("_repr_json_", "application/json"),
         ("_repr_javascript_", "application/javascript"))
CANARY = "_ipython_canary_method_should_not_exist_"  # some objects have every attribute


def cut(text, limit):
    """Beginning and end are what matters."""
    if len(text) <= limit:
        return text
    head = limit // 4
    return f"{text[:head]}\n... {len(text) - limit} characters left out ...\n{text[head - limit:]}"


def represent(value, name, *args, **kwargs):
    """What the method of that name returns, without metadata; None if there is none."""
    method = getattr(value, name, None)
    if not callable(method):
        return None
    try:
        result = method(*args, **kwargs)
    except NotImplementedError:
        return None
    except Exception as e:
        send(NOTE, state.id, data=f"{type(value).__name__}.{name}() failed: {type(e).__name__}: {e}"[:1000])
        return None
    return result[0] if isinstance(result, tuple) and result else result


def encoded(mime, data):
    """As it goes over the channel: bytes."""
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    if isinstance(data, str):
        if mime == "application/pdf" or mime.startswith("image/") and mime != "image/svg+xml":
            return __import__("binascii").a2b_base64(data)
        return data.encode("utf-8", "backslashreplace")
    return standard("json").dumps(data, ensure_ascii=False).encode("utf-8", "backslashreplace")


def bundle(value):
    """A value as Jupyter's MIME types: {type: bytes}."""
    found = {}
    if type(value) not in PLAIN and not isinstance(value, type) and getattr(value, CANARY, None) is None:
        found.update(represent(value, "_repr_mimebundle_", include=None, exclude=None) or {})
        for name, mime in REPRS:
            if mime not in found:
                data = represent(value, name)
                if data is not None:
                    found[mime] = data
        if is_figure(value) and "image/png" not in found:
            found["image/png"] = draw(value)
            state.displayed.add(id(value))
    if "text/plain" not in found:
        found["text/plain"] = cut(repr(value), TEXT_MAX)
    return raw_bundle(found)


def raw_bundle(found):
    ready = {}
    for mime, data in found.items():
        try:
            ready[str(mime)] = data = encoded(mime, data)
            if len(data) > MESSAGE:
                raise ValueError(f"{len(data) >> 20} MiB are too much to show")
        except Exception as e:
            ready.pop(str(mime), None)
            send(NOTE, state.id, data=f"{mime}: {type(e).__name__}: {e}"[:1000])
    return ready


def send_bundle(found, flags=0):
    flush_all()
    with sending:
        state.shown += 1
        for mime, data in found.items():
            send(DATA, state.id, state.shown, mime, data, flags)


def display(*objects, raw=False, **ignored):
    """Show each of the objects, in the richest form that it has.

    With raw=True they are dicts of MIME types and their data.
    """
    for value in objects:
        if getpid() != state.pid:  # a child that the user's code forked: its words would mix with ours
            print(value)
        else:
            send_bundle(raw_bundle(value) if raw else bundle(value))


def displayhook(value):
    """Show the value of the last expression, and keep it in builtins._"""
    if value is None:
        return
    builtins._ = None  # as the interactive interpreter: should the repr use it
    if getpid() != state.pid:
        print(repr(value))
    else:
        send_bundle(bundle(value), RESULT)
    builtins._ = value


# ---------------------------------------------------------------- modules that need to know of us

def is_figure(value):
    figure = getattr(modules.get("matplotlib.figure"), "Figure", None)
    return isinstance(figure, type) and isinstance(value, figure)


def draw(figure):
    out = io.BytesIO()
    figure.savefig(out, format="png", bbox_inches="tight")
    return out.getvalue()


def open_figures():
    return getattr(modules.get("matplotlib._pylab_helpers"), "Gcf", None)


def show_figures(*args, **kwargs):
    """Display all open figures, and close them."""
    if getpid() != state.pid:
        return
    figures = open_figures()
    try:
        for manager in figures.get_all_fig_managers():
            figure = manager.canvas.figure
            if id(figure) not in state.displayed and (figure.axes or figure.get_children()[1:]):
                display(figure)
    finally:
        figures.destroy_all()


def patch_matplotlib(module):
    # Nobody has a screen; unless the policy, a file or the program named one, no toolkit is tried.
    if "MPLBACKEND" not in environ and not isinstance(dict.get(module.rcParams, "backend"), str):
        module.rcParams["backend"] = "agg"


def patch_pyplot(module):
    module.show = show_figures
    modules["matplotlib.figure"].Figure.show = lambda self, warn=True: display(self)


def patch_getpass(module):
    module.getpass = getpass


def patch_ipython(module):
    module.display = display  # without a shell of IPython's it would print


PATCHES = {"getpass": patch_getpass, "matplotlib": patch_matplotlib, "matplotlib.pyplot": patch_pyplot,
           "IPython.display": patch_ipython, "IPython.core.display_functions": patch_ipython}


class Finder:
    """In sys.meta_path: patches a module when it has been imported, by whomever."""

    @staticmethod
    def find_spec(name, where=None, target=None):
        patch = PATCHES.get(name)
        if patch is None:
            return None
        for finder in sys.meta_path:
            spec = None if finder is Finder else finder.find_spec(name, where, target)
            if spec is not None:
                break
        else:
            return None
        loader = spec.loader
        run = getattr(loader, "exec_module", None)

        def exec_module(module):
            del loader.exec_module
            run(module)
            try:
                patch(module)
            except Exception:  # another version than we know
                pass
        try:
            loader.exec_module = exec_module
        except (AttributeError, TypeError):
            pass
        return spec


def standard(name):
    """A module of the standard library, also if the user has a file or a module of that name."""
    module = ours.get(name)
    if module is None:
        top = name.partition(".")[0]
        theirs = {n: modules.pop(n) for n in list(modules) if n.partition(".")[0] == top
                  and not (getattr(modules[n], "__file__", None) or library).startswith(library)}
        search, sys.path = sys.path, [p for p in start_path if p]
        try:
            module = ours[name] = __import__(name, fromlist=("*",))
        finally:
            sys.path = search
            if theirs:
                for n in list(modules):
                    if n.partition(".")[0] == top:
                        del modules[n]
                modules.update(theirs)
    return module


# ---------------------------------------------------------------- execution

def sources():
    """Where linecache looks."""
    cache = getattr(linecache, "cache", None)
    return cache if isinstance(cache, dict) else {}


def remember(name, source):
    """For tracebacks, inspect.getsource(), warnings. Without a time no file is looked for."""
    lines = [line + "\n" for line in source.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    entry = len(source), None, lines, name
    state.cells[name] = entry
    sources()[name] = entry
    state.cells_size += len(source)
    while state.cells_size > CELLS_MAX and len(state.cells) > 1:
        oldest = next(iter(state.cells))
        state.cells_size -= state.cells.pop(oldest)[0]
        sources().pop(oldest, None)


def is_silenced(node):
    """Whether a semicolon follows the last expression, as in `plot(x);`."""
    rest = state.cells[state.cell][2][node.end_lineno - 1].encode("utf-8", "surrogatepass")[node.end_col_offset:]
    return rest.lstrip().startswith(b";")


def run_cell(name, source):
    """Runs the code, shows the value of its last expression, and what it drew."""
    flags = _ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | state.future
    tree = compile(source, name, "exec", flags | _ast.PyCF_ONLY_AST, True)
    last = None
    if tree.body and isinstance(tree.body[-1], _ast.Expr) and not (
            ";" in source and is_silenced(tree.body[-1])):
        last = _ast.Interactive([tree.body.pop()])
    codes = []
    if tree.body:
        codes.append(compile(tree, name, "exec", flags, True))
        state.future |= codes[0].co_flags & future_flags
    if last is not None:
        codes.append(compile(last, name, "single", flags | state.future, True))
    namespace = user.__dict__
    namespace.setdefault("__builtins__", builtins)  # exec() would give it our copy
    shows = True
    try:
        for code in codes:
            if code.co_flags & 0x80:  # CO_COROUTINE
                run_coroutine(eval(code, namespace))
            else:
                exec(code, namespace)
    except (KeyboardInterrupt, SystemExit):
        shows = False
        raise
    finally:
        figures = open_figures()
        if figures is not None and figures.figs and getpid() == state.pid:
            show_figures() if shows else figures.destroy_all()
        flush_all()


def run_coroutine(coroutine):
    loop = state.loop
    asyncio = __import__("asyncio")
    if loop is None or loop.is_closed():
        # poll() needs no descriptor, and what wakes the loop up may be shared with a holder.
        before = {fd for fd, _ in descriptors()}
        loop = state.loop = asyncio.SelectorEventLoop(standard("selectors").PollSelector())
        own_descriptors(d for d in descriptors() if d[0] not in before)
        asyncio.set_event_loop(loop)
    task = loop.create_task(coroutine)
    try:
        loop.run_until_complete(task)
    except (KeyboardInterrupt, SystemExit) as e:
        if task.done():
            raise
        # It came while the loop waited. As in asyncio.run(), the coroutine gets to its `finally`.
        task.cancel()
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError as where:
            while isinstance(where.__context__, asyncio.CancelledError):
                where = where.__context__
            raise e.with_traceback(where.__traceback__) from None
        raise


def is_ours(frame):
    return frame.filename == own_file


def describe(error):
    """name, line in the cell, message, traceback."""
    kind = type(error)
    line = 0
    message = None
    if isinstance(error, SyntaxError) and error.filename == state.cell:
        line, message = error.lineno or 0, error.msg
        lines = state.cells[state.cell][2]
        if error.text is None and 0 < line <= len(lines):  # of an error found after parsing
            error.text = lines[line - 1]
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == state.cell:
            line = trace.tb_lineno
        trace = trace.tb_next
    for name, entry in state.cells.items():  # linecache may have been cleared
        sources().setdefault(name, entry)
    # Of the frames in here, which are left out below, it would read the source.
    theirs = sources().get(own_file)
    sources()[own_file] = 0, None, [], own_file
    whole = TracebackException(kind, error, error.__traceback__)
    if theirs is None:
        sources().pop(own_file, None)
    else:
        sources()[own_file] = theirs
    waiting, seen = [whole], set()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        waiting += [one.__cause__, one.__context__, *(getattr(one, "exceptions", None) or ())]
        if one.stack:
            first = next((i for i, f in enumerate(one.stack) if f.filename.startswith("<cell ")), 0)
            one.stack[:] = [f for f in one.stack[first:] if not is_ours(f)]
    text = "".join(whole.format() if whole.stack else whole.format_exception_only())
    if message is None:
        try:
            message = str(error)
        except Exception:
            message = "<exception str() failed>"
    return kind.__name__, line, message, cut(text, TRACEBACK_MAX)


def with_builtins(call, *args):
    """The standard library needs them as they were."""
    theirs = dict(vars(builtins))
    vars(builtins).update(__builtins__)
    try:
        return call(*args)
    finally:
        for name in __builtins__:
            if name not in theirs:
                del vars(builtins)[name]
        vars(builtins).update(theirs)


def tell(error):
    said, failed = guarded(describe, error)
    if failed is not None:
        said, failed = guarded(with_builtins, describe, error)
    if failed is not None:  # not even that: no memory, a second interrupt
        name = type(error).__name__
        said = name, 0, "", f"{name} (no traceback: {type(failed).__name__})\n"
    name, line, message, text = said
    send(ERROR, state.id, line, name, message.replace("\0", "\\0") + "\0" + text)


def exit_status(error):
    """As the interpreter: status of a SystemExit."""
    if error.code is None or isinstance(error.code, int):
        return int(error.code or 0) & 0xff
    print(error.code, file=sys.stderr)
    return 1


def run_exit_functions():
    shutdown = getattr(modules.get("threading"), "_shutdown", None)
    if shutdown:
        shutdown()  # waits for threads, as at the end of any program
    __import__("atexit")._run_exitfuncs()
    flush_all()


def leave_child(error):
    """A process that the user's code forked has come to the end of the cell."""
    status = 0
    if isinstance(error, SystemExit):
        status = guarded(exit_status, error)[0] or 0
    elif error is not None:
        status = 1
        guarded(lambda: sys.stderr.write(describe(error)[3]))
    flush_all()
    flush()
    _exit(status)


def rehearse_all(source):
    """All that an execution may need, and nothing is left of it: neither a name nor a line."""
    state.id, state.cell = 0, "<cell 0>"
    remember(state.cell, source)
    guarded(run_cell, state.cell, source)
    mend_streams()
    guarded(bundle, 0)
    guarded(describe, guarded(run_cell, state.cell, "None\n1/0")[1])
    sources().pop(state.cell, None)
    state.cells.clear()
    state.cells_size = 0
    flush()


def warm_up_box(source):
    """An execution that nobody sees (its id is 0), in a process that has not been used: what the first
    one will touch is touched now."""
    send(STARTED, 0, state.pid)
    rehearse_all(source)
    for name in state.imported:
        if not name.startswith("matplotlib"):  # a plot takes long, and most boxes would not have needed it
            guarded(warm_up, name, True)
    gc.collect(1)  # all that is not frozen, and not the free lists
    gc.freeze()
    reseed()
    send(DONE, 0, OK)


def execute(id, wanted, source):
    state.ahead = wanted
    why = "not wanted"
    if wanted:
        if page[SPARE] and page[SPARE] != getppid():
            page[SPARE] = 0  # somebody ended it
        why = None if page[SPARE] or page[BASE] == PRESENT else arm()
        if why is True:
            return  # the execution is over already
    if why is None:
        old = page[BEFORE]
        page[BEFORE] = page[SPARE]
        page[SPARE] = 0
        page[BASE] = 0 if page[BEFORE] else PREVIOUS
        end_process(old)
    else:
        drop_holders()  # what they hold is too old
    state.why = f"it ran without rollback: {why}" if why else "the process that held the state is gone"
    name = f"<cell {id}>"
    remember(name, source)
    state.id, state.cell, state.shown = id, name, 0
    state.displayed.clear()
    state.interrupted = False
    state.running = True
    send(STARTED, id, state.pid, "armed" if why is None else "", why if wanted and why else "")
    while state.notes:
        send(NOTE, id, data=state.notes.pop())
    if state.recursion:
        setrecursionlimit(state.recursion)
        state.recursion = 0

    error = guarded(run_cell, name, source)[1]
    if getpid() != state.pid:
        leave_child(error)
    mend_streams()
    if isinstance(error, SystemExit):
        status = guarded(exit_status, error)[0]
        failed = guarded(run_exit_functions)[1]
        if failed is not None:
            tell(failed)
        flush()
        send(DONE, id, ENDED, str(1 if status is None else status))
        start_over(id)
    outcome = OK
    if error is not None:
        outcome = INTERRUPTED if isinstance(error, KeyboardInterrupt) else FAILED
        flush()
        tell(error)
        if not isinstance(error, MemoryError):  # whose frames hold what there is too much of
            keep_last(error)
    flush()
    mend_streams()
    state.running = False
    page[REQUEST] = 0
    send(DONE, id, outcome)


def rehearse():
    """An execution of nothing, in the child of a fork, while nobody waits: copies of the pages that any
    execution writes to are made now."""
    flags = _ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    tree = compile("None\n", "<cell>", "exec", flags | _ast.PyCF_ONLY_AST, True)
    guarded(exec, compile(tree, "<cell>", "exec", flags, True), {})
    mend_streams()
    flush()


def keep_last(error):
    """For pdb.pm() and the like."""
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error


# ---------------------------------------------------------------- completion and inspection

def lookup(dotted):
    """The object of a dotted name of the user's; no more than attributes are evaluated."""
    first, *rest = dotted.split(".")
    value = user.__dict__[first] if first in user.__dict__ else vars(builtins)[first]
    for name in rest:
        value = getattr(value, name)
    return value


def module_names(package):
    """Modules that can be imported; package: below it."""
    if package:
        places = getattr(modules.get(package), "__path__", None)
        if places is None:
            places = [path.join(p or ".", *package.split(".")) for p in sys.path if isinstance(p, str)]
        names = set()
    else:
        places, names = [p or "." for p in sys.path if isinstance(p, str)], set(sys.builtin_module_names)
    for place in places:
        try:
            entries = listdir(place)
        except OSError:
            continue
        for entry in entries:
            name, dot, suffix = entry.partition(".")
            if name.isidentifier() and (suffix in ("py", "pyc") or suffix.endswith("so") or not dot
                                        and name != "__pycache__" and path.isdir(path.join(place, entry))):
                names.add(name)
    names.discard("__init__")
    return names


def names_in(module):
    """What `from module import` can name."""
    if module not in modules and module.partition(".")[0] in getattr(sys, "stdlib_module_names", ()):
        __import__(module)  # the user is about to do just that
    return module_names(module) | set(dir(modules.get(module)) if module in modules else ())


def complete(code, cursor):
    """(names, start): what could stand from start to the cursor."""
    line = code[:cursor].rpartition("\n")[2]
    found = patterns["import"].search(line)
    if found:
        package, _, word = found[1].rpartition(".")
        names = module_names(package)
    else:
        found = patterns["from"].search(line)
        if found:
            word = found[2]
            names = names_in(found[1])
        else:
            found = patterns["attribute"].search(line)
            if found:
                word = found[2]
                value = lookup(found[1])
                names = {n for n in dir(value) if isinstance(n, str)}
            else:
                word = patterns["word"].search(line)[0]
                before = line[:len(line) - len(word)]
                if before.endswith(".") or not word:
                    return [], cursor
                names = {n for n in user.__dict__ if isinstance(n, str)} | set(vars(builtins)) | keywords
    matches = [n for n in names if n.startswith(word)]
    if not word.startswith("_"):
        matches = [n for n in matches if not n.startswith("_")]
    elif not word.startswith("__"):
        matches = [n for n in matches if not n.startswith("__")] or matches
    return sorted(matches)[:1000], cursor - len(word)


def names_at(code, cursor):
    """The dotted name that the cursor is on, then the one in whose call it is."""
    found = patterns["dotted"].search(code[:cursor] + patterns["after"].match(code, cursor)[0])
    if found:
        yield found[0]
    depth = 0
    for at in range(cursor - 1, -1, -1):
        depth += {")": 1, "]": 1, "}": 1, "(": -1, "[": -1, "{": -1}.get(code[at], 0)
        if depth < 0:
            depth = 0
            found = patterns["dotted"].search(code[:at].rstrip())
            if found:
                yield found[0]


def inspection(code, cursor):
    """Signature and documentation of what is at the cursor; empty if nothing is known of it."""
    for name in names_at(code, cursor):
        try:
            value = lookup(name)
        except (KeyError, AttributeError):
            continue
        break
    else:
        return ""
    inspect = standard("inspect")
    if callable(value):
        kind = "class" if isinstance(value, type) else type(value).__name__
        try:
            head = f"{name}{inspect.signature(value)}"
        except Exception:  # none is known, or the user's file of some name was imported
            head = f"{name}(...)"
    else:
        kind = type(value).__name__
        head = f"{name} = {cut(standard('reprlib').repr(value), 1000)}"
    document = inspect.getdoc(value)
    return cut(f"{head}\ntype: {kind}\n" + (f"\n{document}\n" if document else ""), TRACEBACK_MAX)


def answer(kind, id, cursor, source):
    state.interrupted = False
    cursor = max(0, min(cursor, len(source)))
    result, error = limited(complete if kind == COMPLETE else inspection, source, cursor)
    mend_streams()
    flush()
    if getpid() != state.pid:
        _exit(0)
    if isinstance(error, KeyboardInterrupt):
        send(REFUSED, id, data="it took too long")
    elif kind == INSPECT:
        send(REPLY, id, 0, "text/plain", result or "")
    else:
        names, start = result or ([], cursor)
        names = ",".join(f'"{name}"' for name in names if name.isidentifier())
        send(REPLY, id, 0, "application/json", f'{{"matches":[{names}],"start":{start},"end":{cursor}}}')


# ---------------------------------------------------------------- the main loop

def take(kind, id, value, data):
    if kind == EXECUTE and not id:
        warm_up_box(data.decode("utf-8", "replace"))
    elif kind == EXECUTE:
        execute(id, bool(value & 1), data.decode("utf-8", "replace"))
    elif kind in (COMPLETE, INSPECT):
        answer(kind, id, value, data.decode("utf-8", "replace"))
    elif kind == RESTART:
        start_over(id)
    elif kind == UNDO:
        if not page[BEFORE] and page[BASE] != PREVIOUS:
            send(REFUSED, id, data=state.why)
            return
        page[REQUEST], page[QUIET] = id, 1
        # Its parent sees the spare die or, if there is none, this process.
        spare = page[SPARE]
        page[SPARE] = 0
        end_process(spare)
        _exit(0)
    # An INPUT that nobody waits for any more is dropped.


def serve():
    failures = 0
    if zygote is None:  # else there was, or will be, a whole execution to warm up
        rehearse()
    while True:
        request = None
        try:
            if state.ahead and not page[SPARE] and page[BASE] != PRESENT and not (
                    page[BASE] == PREVIOUS and select([channel], (), (), SOON)[0]) and arm() is None:
                rehearse()
            request = receive()
            take(*request)
            page[REQUEST] = 0
            failures = 0
        except BaseException as e:
            # A signal handler of the user's, while nothing of the user's ran; no memory; damage that
            # nobody has thought of. Whoever waits is answered.
            failures += 1
            try:
                if request is not None:
                    recover(request[0], request[1], e)
            except BaseException:
                failures = 9
            if failures > 3:
                _exit(70)


def recover(kind, id, error):
    why = f"{type(error).__name__} outside of the code: {error}"
    if kind != EXECUTE:
        send(REFUSED, id, data=why)
    elif page[REQUEST]:
        state.running = False
        page[REQUEST] = 0
        send(NOTE, id, data=why)
        send(DONE, id, FAILED)


# ---------------------------------------------------------------- the beginning

def take_channel():
    """Descriptors far away from those that the user's code will see, but not so far that the table
    of a process grows."""
    top = sysconf("SC_OPEN_MAX")
    if not 0 < top < 1024:
        top = 1024
    try:
        for i, fd in enumerate((3, 1, 2), 1):
            dup2(fd, top - i, inheritable=False)
    except OSError as e:
        sys.exit(f"pale: no kernel channel: descriptor {fd}: {e.strerror}")
    close(3)
    return top - 1, {1: top - 2, 2: top - 3}


def warm_up(name, in_box=False):
    """The first use of some modules takes longer than the import. In a box it is also for the memory that it
    writes to, and does what most do."""
    if name == "numpy":
        ones = modules[name].ones((8, 8))
        repr(ones @ ones)
    elif name == "pandas":
        frame = modules[name].DataFrame({"a": [1.5, 2, 3], "b": ["x", "y", "x"], "c": range(3)})
        frame._repr_html_(), frame.to_string(), frame.groupby("b").a.sum().to_string()
        frame[frame.c > 1].sort_values("a").c.mean()
        if not in_box:
            repr(frame), frame.describe(), frame.merge(frame, on="b"), frame.groupby("c").agg({"a": "mean"})
    elif name.partition(".")[0] == "matplotlib":
        pyplot = __import__("matplotlib.pyplot", fromlist=("*",))
        figure, axes = pyplot.subplots()
        axes.plot([0, 1])
        draw(figure)
        pyplot.close(figure)


def preload(names, later=None):
    """later: given in the base, where no threads can be had."""
    for name in names:
        threads = len(listdir("/proc/self/task"))
        try:
            __import__(name)
            warm_up(name)
            state.imported.append(name)
        except (Exception, SystemExit) as e:
            if zygote and later is not None:
                later.append(name)  # what the box shows of the policy's files is not here
            else:
                state.notes.append(f"cannot import {name}: {type(e).__name__}: {e}")
        if later is not None and len(listdir("/proc/self/task")) > threads:
            # Only another process can forget them. `later`: each fresh process imports it.
            if not zygote:
                dup2(channel, 3)
            rest = ["--import", ",".join(n for n in names if n != name)] if len(names) > 1 else []
            flags = ["--no-rollback"] if not state.ahead else []
            if zygote:
                flags += ["--serve", "{},{}".format(*zygote)]
            execv(sys.executable, [sys.executable, __file__, *rest, *flags, "--later", ",".join([*later, name])])


def become_kernel(sock, library):
    """Returns in each fork of a zygote, in its box, whose environment may not be the zygote's."""
    if libc is None:
        sys.exit("pale: a zygote needs ctypes")
    ours = {name: environ[name] for name in THREAD_VARIABLES if name not in given}
    fork_into_boxes = ctypes.PyDLL(f"/proc/self/fd/{library}").pale_serve
    close(library)
    rehearse_all("None")  # some modules are imported only when they are needed
    room = ctypes.create_string_buffer(1 << 17)
    gc.collect()
    gc.freeze()
    n = fork_into_boxes(sock, room, ctypes.c_size_t(len(room)))
    wanted = dict(item.split(b"=", 1) for item in room.raw[:n].split(b"\0") if b"=" in item)
    for name in set(environb) - set(wanted):
        del environb[name]
    for name, value in wanted.items():
        if environb.get(name) != value:
            environb[name] = value
    for name, value in ours.items():
        environ.setdefault(name, value)


def main(arguments):
    global channel, spares, zygote
    names = {"--import": [], "--later": []}
    arguments = iter(arguments)
    for argument in arguments:
        option, _, value = argument.partition("=")
        if option in names:
            names[option] = [n for n in (value or next(arguments, "")).split(",") if n]
        elif option == "--no-rollback":
            state.ahead = False
        elif option == "--serve":
            zygote = [int(n) for n in (value or next(arguments, "")).split(",")]
        else:
            sys.exit(f"pale: unknown argument: {argument}")
    if not zygote:
        channel, spares = take_channel()
    if state.ahead or zygote:
        for name in THREAD_VARIABLES:
            environ.setdefault(name, "1")
    sys.argv = [""]
    if not safe_path:
        sys.path[0] = ""
    sys.meta_path.insert(0, Finder)
    take_streams()
    builtins.display = display
    builtins.input = input
    sys.displayhook = displayhook
    preload(names["--import"], names["--later"])
    if not zygote:
        say_ready()
    return names["--later"]


def say_ready():
    send(READY, 0, 1, "python", "Python " + sys.version.split()[0])


real_input = builtins.input
own_file = main.__code__.co_filename
main_thread = _thread.get_ident()
libc = c_stdout = None
ours = {}
safe_path = getattr(sys.flags, "safe_path", False)  # then our own directory is not the first
start_path = sys.path[not safe_path:]
library = path.dirname(io.__file__)

user = type(sys)("__main__")
user.__builtins__ = builtins
us, modules["__main__"] = modules["__main__"], user

channel, spares, zygote = -1, {}, None
given = frozenset(environ)
later = main(sys.argv[1:])
# Not before READY: these take longer than all of the above, and nobody waits. And not from the user's
# directory.
search, sys.path = sys.path, list(start_path)
import __future__  # noqa: E402
import keyword  # noqa: E402
import linecache  # noqa: E402
import mmap  # noqa: E402
import re  # noqa: E402
from select import select  # noqa: E402
from traceback import TracebackException  # noqa: E402

future_flags = 0
for feature in __future__.all_feature_names:
    future_flags |= getattr(__future__, feature).compiler_flag
future_flags &= ~0x10  # nested_scopes: CO_NESTED is no option of compile()
keywords = frozenset(keyword.kwlist + getattr(keyword, "softkwlist", []))
patterns = {name: re.compile(p) for name, p in {
    "import": r"^\s*(?:import\s+(?:.*,\s*)?|from\s+)([\w.]*)$",
    "from": r"^\s*from\s+([\w.]+)\s+import\s+\(?\s*(?:.*,\s*)?(\w*)$",
    "attribute": r"(?<![\w.)\]}'\"])([^\W\d]\w*(?:\.[^\W\d]\w*)*)\s*\.\s*(\w*)$",
    "word": r"(?:[^\W\d]\w*)?$",
    "dotted": r"(?<![\w.)\]}'\"])[^\W\d]\w*(?:\.[^\W\d]\w*)*$",
    "after": r"\w*",
}.items()}
try:
    import ctypes
    libc = ctypes.PyDLL(None)  # keeps the interpreter's lock: for what returns at once
    same_fork, prctl = libc.fork, libc.prctl
    prctl.argtypes = [ctypes.c_int] + 4 * [ctypes.c_ulong]
    c_flush, c_stdout = ctypes.CDLL(None).fflush, ctypes.c_void_p.in_dll(libc, "stdout")
except (ImportError, OSError, ValueError, AttributeError):
    pass
sys.path = search
try:
    import faulthandler
    faulthandler.enable(file=2)  # a crash says on stderr where it was
except (ImportError, OSError, ValueError):
    pass
if zygote:
    become_kernel(*zygote)
    channel, spares = take_channel()
    say_ready()
words = mmap.mmap(-1, 4096)
page = memoryview(words).cast("I")
our_regions = {ctypes.addressof(ctypes.c_char.from_buffer(words))} if libc else ()
own_descriptors(descriptors())
memory_pages = sysconf("SC_PHYS_PAGES")  # in the box's view
gc.freeze()
base()
preload(later)
# Through a frame of other globals, or Python 3.8 and 3.9 go on with the builtins of this one.
eval("serve()", {"serve": serve})
