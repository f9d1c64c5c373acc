"""Attacks, each a function that returns what it got, or raises an exception where it was denied. Run by
test_escapes.py, outside and in a box alike: attacks.py JSON prints {name: "got ..." or "no ..."}."""
import ctypes
import errno
import fcntl
import json
import mmap
import os
import platform
import signal
import socket
import struct
import subprocess
import sys

given = json.loads(sys.argv[1])
secret, token = given["secret"], given["token"]
libc = ctypes.CDLL(None, use_errno=True)
attacks = []
own = set()  # descriptors of this program
first = given["first"]  # a process that a box's code could want to take over: its first one


def attack(function):
    attacks.append(function)
    return function


def call(number, *args):
    r = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    if r < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return r


def want(text, what="secret"):
    if token not in text:
        raise ValueError(f"not the {what}: {text[:60]!r}")
    return what


def read(path):
    with open(path, errors="replace") as f:
        return want(f.read())


# --- files ---------------------------------------------------------------------------------------

@attack
def file_directly():
    return read(secret)


@attack
def file_by_proc_self_root():
    return read("/proc/self/root" + secret)


@attack
def file_by_proc_cwd_of_others():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for way in ("root", "cwd"):
            for path in (secret, "/.." * 20 + secret):
                try:
                    return read(f"/proc/{pid}/{way}{path}")
                except (OSError, ValueError):
                    pass
    raise OSError(errno.ENOENT, "no process led there")


@attack
def file_by_dots():
    return read("../" * 40 + secret[1:])


@attack
def file_by_link():
    os.symlink(secret, "/tmp/pale-link")
    try:
        return read("/tmp/pale-link")
    finally:
        os.unlink("/tmp/pale-link")


@attack
def file_by_the_loader():
    loader = {"x86_64": "/lib64/ld-linux-x86-64.so.2", "aarch64": "/lib/ld-linux-aarch64.so.1"}[platform.machine()]
    return want(subprocess.run([loader, "/bin/cat", secret], capture_output=True, text=True).stdout)


@attack
def file_by_a_program_in_memory():
    fd = os.memfd_create("x")
    with open("/bin/cat", "rb") as f:
        os.write(fd, f.read())
    return want(subprocess.run([f"/proc/self/fd/{fd}", secret], pass_fds=[fd], capture_output=True, text=True).stdout)


@attack
def file_by_a_copied_program():
    path = "/tmp/pale-cat"
    subprocess.run(["cp", "/bin/cat", path], check=True)
    try:
        return want(subprocess.run([path, secret], capture_output=True, text=True).stdout)
    finally:
        os.unlink(path)


@attack
def file_by_inherited_descriptor():
    for fd in range(3, 200):
        try:
            return want(os.pread(fd, 4096, 0).decode(errors="replace"))
        except (OSError, ValueError):
            pass
    raise OSError(errno.EBADF, "no descriptor led there")


@attack
def file_by_inherited_directory():
    for fd in range(0, 200):
        for path in (secret[1:], "../" * 40 + secret[1:]):
            try:
                with os.fdopen(os.open(path, os.O_RDONLY, dir_fd=fd)) as f:
                    return want(f.read())
            except (OSError, ValueError):
                pass
    raise OSError(errno.EBADF, "no descriptor led there")


@attack
def descriptors_besides_the_standard_ones():
    found = [fd for fd in range(3, 1000) if fd not in own and os.path.lexists(f"/proc/self/fd/{fd}")]
    if not found:
        raise OSError(errno.EBADF, "none")
    return found


@attack
def file_by_handle():
    handle = struct.pack("Ii", 128, 0) + bytes(128)
    buf = ctypes.create_string_buffer(handle)
    mount = ctypes.c_int()
    name_to, by = {"x86_64": (303, 304), "aarch64": (264, 265)}[platform.machine()]
    call(name_to, -100, secret.encode(), buf, ctypes.byref(mount), 0)
    where = os.open(os.path.dirname(secret), os.O_RDONLY)
    return want(os.read(call(by, where, buf, os.O_RDONLY), 4096).decode())


@attack
def write_to_the_host():
    with open(given["target"], "w") as f:
        f.write("written")
    return "written"


@attack
def write_to_usr():
    with open("/usr/pale-cases-attack", "w") as f:
        f.write("x")
    os.unlink("/usr/pale-cases-attack")
    return "written"


@attack
def write_to_etc():
    with open("/etc/pale-cases-attack", "w") as f:
        f.write("x")
    os.unlink("/etc/pale-cases-attack")
    return "written"


# --- mounts and namespaces -----------------------------------------------------------------------

NEWNS, NEWUSER, NEWPID, NEWNET = 0x20000, 0x10000000, 0x20000000, 0x40000000
RDONLY, REMOUNT, BIND, PRIVATE, REC = 1, 32, 4096, 1 << 18, 16384


def sure(r):
    if r < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return r


def own_mounts():
    sure(libc.unshare(NEWNS if os.geteuid() == 0 else NEWNS | NEWUSER))
    sure(libc.mount(None, b"/", None, REC | PRIVATE, None))


@attack
def unshare_a_user_namespace():
    sure(libc.unshare(NEWUSER))
    return "a user namespace"


@attack
def clone_a_user_namespace():
    number = {"x86_64": 56, "aarch64": 220}[platform.machine()]
    pid = call(number, NEWUSER | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return "a child in a user namespace"


@attack
def clone3_a_user_namespace():
    args = ctypes.create_string_buffer(struct.pack("8Q", NEWUSER, 0, 0, 0, signal.SIGCHLD, 0, 0, 0))
    pid = call(435, args, 64)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return "a child in a user namespace"


@attack
def mount_a_tmpfs():
    own_mounts()
    sure(libc.mount(b"x", b"/tmp", b"tmpfs", 0, None))
    return "mounted"


@attack
def mount_without_a_namespace():
    sure(libc.mount(b"/usr", b"/usr", None, BIND, None))
    sure(libc.umount2(b"/usr", 2))
    return "mounted"


@attack
def bind_over_etc():
    own_mounts()
    sure(libc.mount(b"/tmp", b"/etc", None, BIND, None))
    return "bound"


@attack
def remount_usr_writable():
    own_mounts()
    sure(libc.mount(b"/usr", b"/usr", None, BIND, None))
    sure(libc.mount(None, b"/usr", None, REMOUNT | BIND, None))
    with open("/usr/pale-cases-attack", "w"):
        os.unlink("/usr/pale-cases-attack")
    return "writable"


@attack
def new_mount_api_fsopen():
    if os.geteuid() != 0:
        own_mounts()
    return call(430, b"tmpfs", 0)


@attack
def new_mount_api_open_tree():
    own_mounts()
    return call(428, -100, b"/", 1)


@attack
def unmount_something():
    own_mounts()
    sure(libc.umount2(b"/proc", 2))
    return "unmounted"


@attack
def change_the_root():
    if os.geteuid() != 0:
        own_mounts()
    os.chroot("/tmp")
    return "chroot"


@attack
def join_the_hosts_namespaces():
    pidfd = os.pidfd_open(given["pid"])
    sure(libc.setns(pidfd, NEWNS if os.geteuid() == 0 else NEWUSER | NEWNS))
    return "joined"


# --- processes -----------------------------------------------------------------------------------

@attack
def see_a_process_of_the_host():
    with open(f"/proc/{given['pid']}/cmdline", errors="replace") as f:
        return want(f.read(), "command line")


@attack
def see_any_command_line_of_the_host():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", errors="replace") as f:
                line = f.read()
        except OSError:
            continue
        if token in line and "attacks.py" not in line:
            return line
    raise OSError(errno.ESRCH, "none")


@attack
def see_the_callers_environment():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", errors="replace") as f:
                if "CANARY=" + token in f.read():
                    return f"environment of {pid}"
        except OSError:
            pass
    raise OSError(errno.ESRCH, "none")


@attack
def inherit_the_callers_environment():
    return want(os.environ.get("CANARY", ""), "variable")


@attack
def signal_a_process_of_the_host():
    os.kill(given["pid"], 0)
    return "signalled"


@attack
def read_the_memory_of_the_first_process():
    with open(f"/proc/{first}/mem", "rb") as f:
        with open(f"/proc/{first}/maps") as m:
            for line in m:
                start = int(line.split("-")[0], 16)
                f.seek(start)
                return len(f.read(16))
    raise OSError(errno.EPERM, "no maps")


@attack
def trace_the_first_process():
    sure(libc.ptrace(0x4206, ctypes.c_long(first), ctypes.c_long(0), ctypes.c_long(0)))
    libc.ptrace(17, ctypes.c_long(first), ctypes.c_long(0), ctypes.c_long(0))
    return "seized"


@attack
def look_at_the_first_process():
    found = os.listdir(f"/proc/{first}/fd")
    if not found:
        raise OSError(errno.ENOENT, "none")
    return os.readlink(f"/proc/{first}/exe"), found


@attack
def open_a_descriptor_of_the_first_process():
    for fd in os.listdir(f"/proc/{first}/fd"):
        try:
            return os.open(f"/proc/{first}/fd/{fd}", os.O_RDONLY | os.O_NONBLOCK)
        except OSError as e:
            last = e
    raise last


@attack
def raise_the_priority():
    os.setpriority(os.PRIO_PROCESS, 0, -10)
    return "raised"


@attack
def raise_a_resource_limit():
    import resource
    soft, hard = resource.getrlimit(resource.RLIMIT_MSGQUEUE)
    resource.setrlimit(resource.RLIMIT_MSGQUEUE, (hard + 1, hard + 1))
    return hard + 1


@attack
def become_root():
    os.setuid(0)
    return "root"


@attack
def have_a_capability():
    with open("/proc/self/status") as f:
        sets = {l.split()[0]: int(l.split()[1], 16) for l in f if l.startswith("Cap")}
    # The bounding set only bounds what no_new_privs and the locked secure bits forbid anyway.
    sets.pop("CapBnd:")
    if not any(sets.values()):
        raise OSError(errno.EPERM, "none in any set")
    return sets


# --- sockets and IPC -----------------------------------------------------------------------------

def connect(family, address):
    with socket.socket(family) as s:
        s.settimeout(3)
        s.connect(address)
        return want(s.recv(100).decode(), "greeting")


@attack
def connect_to_loopback():
    return connect(socket.AF_INET, ("127.0.0.1", given["port"]))


@attack
def connect_to_unix_socket():
    return connect(socket.AF_UNIX, given["unix"])


@attack
def connect_to_abstract_socket():
    return connect(socket.AF_UNIX, "\0" + given["abstract"])


@attack
def send_a_datagram():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(1)
        s.sendto(b"x", ("127.0.0.1", given["udp"]))
        return want(s.recv(100).decode(), "answer")


@attack
def send_over_a_standard_stream():
    for fd in range(3):
        try:
            s = socket.socket(fileno=os.dup(fd))
        except OSError:
            continue
        try:
            s.getpeername()
            return f"descriptor {fd} is a socket"
        except OSError:
            pass
    raise OSError(errno.ENOTSOCK, "none is a socket")


@attack
def a_raw_socket():
    socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)
    return "raw"


@attack
def a_packet_socket():
    socket.socket(17, socket.SOCK_RAW, 0)
    return "packet"


@attack
def a_crypto_socket():
    s = socket.socket(38, socket.SOCK_SEQPACKET, 0)
    s.bind(("hash", "sha256"))
    return "AF_ALG"


@attack
def any_other_socket_family():
    ordinary = {1, 2, 10, 16}  # UNIX, INET, INET6, NETLINK
    found = set()
    for family in range(60):
        for kind in (1, 2, 3, 5):
            fd = libc.socket(family, kind, 0)
            if fd >= 0:
                os.close(fd)
                found.add(family)
    if not found - ordinary:
        raise OSError(errno.EAFNOSUPPORT, f"only {sorted(found)}")
    return sorted(found - ordinary)


@attack
def shared_memory_of_the_host():
    libc.shmat.restype = ctypes.c_void_p
    at = libc.shmat(given["shm"], None, 0o10000)
    if at in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return want(ctypes.string_at(at).decode(), "segment")


@attack
def message_queue_of_the_host():
    number = {"x86_64": 240, "aarch64": 180}[platform.machine()]
    return call(number, given["queue"].encode(), os.O_RDONLY, 0, None)


@attack
def the_callers_keyring():
    # KEYCTL_SEARCH in the session keyring, then KEYCTL_READ.
    number = {"x86_64": 250, "aarch64": 219}[platform.machine()]
    key = call(number, 10, -3, b"user", given["key"].encode(), 0)
    buf = ctypes.create_string_buffer(100)
    call(number, 11, key, buf, 100)
    return want(buf.value.decode(), "key")


# --- the kernel's surface ------------------------------------------------------------------------

def opens(path, flags):
    os.close(os.open(path, flags))
    return path


for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/kernel/modprobe",
             "/proc/sys/vm/overcommit_memory", "/sys/kernel/uevent_helper", "/dev/mem", "/dev/kmsg",
             "/proc/kcore", "/sys/fs/cgroup/release_agent"):
    def open_it(path=path):
        return opens(path, os.O_WRONLY if path.startswith(("/proc/s", "/sys")) else os.O_RDONLY)
    open_it.__name__ = "open_" + path[1:].replace("/", "_")
    attack(open_it)


@attack
def any_writable_kernel_setting():
    found = []
    for top in ("/proc/sys", "/sys"):
        for base, _, files in os.walk(top):
            for name in files:
                path = os.path.join(base, name)
                try:
                    fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
                    # Everybody may open this one, and write to it with a capability only.
                    if name == "ns_last_pid":
                        os.write(fd, b"300")
                    os.close(fd)
                    found.append(path)
                except OSError:
                    pass
    if not found:
        raise OSError(errno.EACCES, "none")
    return found[:5]


def kernel_call(name, number, *args):
    def it():
        return call(number, *args)
    it.__name__ = "call_" + name
    attack(it)


if platform.machine() == "x86_64":
    buf = ctypes.create_string_buffer(512)
    kernel_call("io_uring_setup", 425, 4, buf)
    kernel_call("userfaultfd", 323, 1)
    kernel_call("add_key", 248, b"user", b"pale-test", b"x", 1, -2)
    kernel_call("keyctl", 250, 0, -3, 0)
    kernel_call("bpf", 321, 0, ctypes.create_string_buffer(struct.pack("IIII", 2, 4, 4, 1) + bytes(64)), 72)
    kernel_call("perf_event_open", 298, ctypes.create_string_buffer(struct.pack("IIQQQQQ", 1, 112, 0, 0, 0, 0, 0x61)
                                                                     + bytes(200)), 0, -1, -1, 0)
    kernel_call("kcmp", 312, os.getpid(), os.getpid(), 0, 0, 0)
    kernel_call("personality", 135, 0x0400000)
    kernel_call("modify_ldt", 154, 0, buf, 64)
    kernel_call("fanotify_init", 300, 0, 0)
    kernel_call("iopl", 172, 3)
    kernel_call("syslog", 103, 3, buf, 64)
    kernel_call("sethostname", 170, platform.node().encode(), len(platform.node()))
    kernel_call("mount_setattr", 442, -100, b"/", 0, ctypes.create_string_buffer(32), 32)
    kernel_call("vhangup", 153)

    @attack
    def a_32bit_call():
        # mov eax, 20 (getpid); int 0x80; ret
        code = mmap.mmap(-1, 4096, prot=7)
        code.write(bytes.fromhex("b814000000cd80c3"))
        function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
        pid = function()
        if pid < 0:
            raise OSError(-pid, os.strerror(-pid))
        return pid

    @attack
    def an_x32_call():
        return call(0x40000000 + 39)


@attack
def push_input_into_a_terminal():
    fd = os.open("/dev/tty", os.O_RDWR)
    fcntl.ioctl(fd, 0x5412, b"x")
    return "pushed"


# --- all of them ---------------------------------------------------------------------------------

def attempt(function):
    reader, writer = os.pipe()
    own.update((reader, writer))
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(10)
            text = f"got {function()}"
        except BaseException as e:
            name = errno.errorcode.get(e.errno, "?") if isinstance(e, OSError) else type(e).__name__
            text = f"no {name}: {e}"
        os.write(writer, text.encode()[:2000])
        os._exit(0)
    os.close(writer)
    text = b""
    while True:
        part = os.read(reader, 4096)
        if not part:
            break
        text += part
    os.close(reader)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return f"killed {os.WTERMSIG(status)}"
    return text.decode()


print(json.dumps({f.__name__: attempt(f) for f in attacks}))
