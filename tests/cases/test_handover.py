"""What a caller hands over without meaning to: none of it may be there in a box."""
import json
import os
import pty
import resource
import select
import signal
import subprocess
import time

from case import *

# What a process has from its parent, as JSON.
LOOK = r"""
import json, os, resource
s = dict(l.split(":", 1) for l in open("/proc/self/status"))
umask = os.umask(0); os.umask(umask)
try: tty = os.close(os.open("/dev/tty", os.O_RDWR)) is None
except OSError: tty = False
print(json.dumps({
    "umask": umask, "cwd": os.getcwd(), "blocked": int(s["SigBlk"], 16), "ignored": int(s["SigIgn"], 16),
    "caught": int(s["SigCgt"], 16), "fds": sorted(int(f) for f in os.listdir("/proc/self/fd") if os.path.lexists("/proc/self/fd/" + f)),
    "env": dict(os.environ), "tty": tty, "session": os.getsid(0), "nice": os.nice(0), "groups": os.getgroups(),
    "oom": open("/proc/self/oom_score_adj").read().strip(), "no_new_privs": s["NoNewPrivs"].strip(),
    "scheduler": os.sched_getscheduler(0), "realtime": resource.getrlimit(resource.RLIMIT_RTPRIO)[1],
    "seccomp": s["Seccomp"].strip(), "core": resource.getrlimit(resource.RLIMIT_CORE)[1],
    "nofile": resource.getrlimit(resource.RLIMIT_NOFILE), "stack": resource.getrlimit(resource.RLIMIT_STACK)[0],
    "affinity": len(os.sched_getaffinity(0)), "dumpable": os.access("/proc/self/mem", os.R_OK),
    "mode": oct(os.stat("/proc/self").st_mode), "pid": os.getpid(), "ppid": os.getppid(),
    "kinds": [os.readlink(f"/proc/self/fd/{i}").split(":")[0] for i in range(3)],
}))
"""


def prepare():
    """A caller that left everything in a mess."""
    os.umask(0o077)
    os.chdir(work)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.signal(signal.SIGQUIT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD, signal.SIGALRM])
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, 8192))
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    os.nice(3)
    for value in ("500", "-500"):  # the second takes a privilege
        try:
            with open("/proc/self/oom_score_adj", "w") as f:
                f.write(value)
        except PermissionError:
            pass
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        pass


extra = [os.open("/", os.O_RDONLY), os.open(write("work/x", "x"), os.O_RDWR)]
mess = {**env, "SECRET_TOKEN": "canary-env", "LD_PRELOAD": "", "PYTHONPATH": "/nonexistent", "BASH_ENV": "/x",
        "XDG_RUNTIME_DIR": "/run/user/0", "SSH_AUTH_SOCK": "/x", "DBUS_SESSION_BUS_ADDRESS": "x", "http_proxy": "x"}


def look(*prefix, **more):
    p = subprocess.run([*prefix, PYTHON, "-c", LOOK], env=mess, preexec_fn=prepare, pass_fds=extra, timeout=30,
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    try:
        return json.loads(p.stdout)
    except ValueError:
        raise AssertionError(p.stderr.decode(errors="replace")[:1000] or p.returncode)


@case
def test_inheritance():
    out = look()
    got = look(*command(), "--")
    bit = lambda s: 1 << (s - 1)

    check("umask 077 outside", out["umask"] == 0o077)
    same("umask inside", got["umask"], 0o022)
    check("signals are blocked outside", out["blocked"] & bit(signal.SIGTERM))
    same("no signal is blocked inside", got["blocked"], 0)
    check("signals are ignored outside", out["ignored"] & bit(signal.SIGHUP) and out["ignored"] & bit(signal.SIGQUIT))
    # Python itself ignores SIGPIPE and SIGXFSZ.
    same("no signal is ignored inside", got["ignored"] & ~(bit(signal.SIGPIPE) | bit(signal.SIGXFSZ)), 0)
    check("descriptors are handed over outside", set(extra) <= set(out["fds"]))
    same("only three descriptors inside", got["fds"], [0, 1, 2])
    check("the environment is handed over outside", out["env"].get("SECRET_TOKEN") == "canary-env")
    check("the environment is built anew inside", not set(got["env"]) & {
        "SECRET_TOKEN", "LD_PRELOAD", "PYTHONPATH", "BASH_ENV", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK",
        "DBUS_SESSION_BUS_ADDRESS", "http_proxy", "PALE_STATE_DIR"}, got["env"])
    check("HOME is there and not the caller's", got["env"]["HOME"] not in ("", home), got["env"]["HOME"])
    check("the working directory is not the caller's, which is not shown", got["cwd"] != work, got["cwd"])
    same("a priority below the caller's is kept", got["nice"] >= out["nice"], True)
    check("the caller may dump core outside", out["core"] == -1)
    same("no core dumps inside, in files or to a handler", got["core"], 1)
    same("open files are limited by the policy", got["nofile"], [1024, 1024])
    same("no new privileges", got["no_new_privs"], "1")
    same("a seccomp filter is there", got["seccomp"], "2")
    check("the out-of-memory killer spares it no more than others", int(got["oom"]) >= max(0, int(out["oom"])), got["oom"])
    if out["scheduler"] != os.SCHED_FIFO:
        skip("real time is the caller's outside", "this user may not have it")
    same("no real time inside, and no way to it", [got["scheduler"], got["realtime"]], [os.SCHED_OTHER, 0])
    check("few processes are there", got["pid"] < 20, got["pid"])


@case
def test_grep_for_the_environment():
    # Without Python: everything that /proc shows, by a shell.
    r = box("--", "sh", "-c", "cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; echo end",
            more={"SECRET_TOKEN": "canary-" + "env"})
    check("no trace of the caller's environment in /proc", "canary-env" not in r.out and "end" in r.out, r)
    p = subprocess.run(["sh", "-c", "cat /proc/self/environ | tr '\\0' '\\n'"], capture_output=True,
                       env={**env, "SECRET_TOKEN": "canary-env"})
    check("outside it is found that way", b"canary-env" in p.stdout)


def with_terminal(argv, feed=b"", seconds=15):
    """Runs argv with a controlling terminal; what came out of it, and the exit status."""
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(work)
        os.execve(argv[0], argv, {**env, "TERM": "xterm"})
    out, end = b"", time.monotonic() + seconds
    while time.monotonic() < end:
        if feed and b"go" in out and select.select([], [master], [], 0)[1]:
            os.write(master, feed)
            feed = b""
        if select.select([master], [], [], 0.1)[0]:
            try:
                part = os.read(master, 65536)
            except OSError:
                break
            if not part:
                break
            out += part
    else:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    os.close(master)
    return out.decode(errors="replace"), os.waitstatus_to_exitcode(status)


# Puts a command into the input of the terminal, as if the caller had typed it after the run.
PUSH = r"""
import fcntl, os
done = []
for name in ("/dev/tty", 0, 1, 2):
    try: fd = os.open(name, os.O_RDWR) if isinstance(name, str) else name
    except OSError: continue
    for request, arg in ((0x5412, b"x"), (0x541C, b"\x02"), (0x5412 | 1 << 32, b"x")):
        try: fcntl.ioctl(fd, request & 0xffffffff, arg); done.append((name, hex(request)))
        except OSError as e: pass
print("PUSHED" if done else "REFUSED", done)
"""


@case
def test_terminal():
    tty = "import os; print('TTY' if os.isatty(0) and os.close(os.open('/dev/tty', os.O_RDWR)) is None else 'NONE')"
    out, _ = with_terminal([PYTHON, "-c", tty])
    check("outside there is a controlling terminal", "TTY" in out, out)
    out, status = with_terminal([*command(), "--", PYTHON, "-c", "import os\ntry: os.open('/dev/tty', os.O_RDWR); "
                                                                 "print('CONTROLLED')\nexcept OSError as e: print('NO', e)"])
    check("without -t there is no controlling terminal", "NO" in out and "CONTROLLED" not in out, out)
    names = "import os\nfor i in range(3):\n  try: print('NAME', os.ttyname(i))\n  except OSError: print('NONE')"
    out, _ = with_terminal([*command(), "--", PYTHON, "-c", names])
    check("without -t no stream is the caller's terminal", "NAME" not in out and "NONE" in out, out)
    out, status = with_terminal([*command("-t"), "--", PYTHON, "-c", tty])
    check("with -t there is one", "TTY" in out and status == 0, (out, status))
    out, _ = with_terminal([*command("-t"), "--", PYTHON, "-c", PUSH])
    check("with -t nothing can be pushed into its input", "REFUSED" in out and "PUSHED" not in out, out)
    out, _ = with_terminal([PYTHON, "-c", PUSH])
    if "PUSHED" in out:
        check("outside it can be pushed", True)
    else:
        skip("outside it can be pushed", "this kernel refuses TIOCSTI to everybody")
    out, _ = with_terminal([*command("-t"), "--", PYTHON, "-c",
                            "import os,glob; print('PTS', sorted(os.path.basename(p) for p in glob.glob('/dev/pts/*')))"])
    check("no other terminal is there", "PTS ['0', 'ptmx']" in out, out)


@case
def test_session_and_job_control():
    out, status = with_terminal([*command("-t"), "--", "bash", "-ic", "sleep 30 & jobs; kill %1; wait; echo DONE"])
    check("job control works", "Running" in out and "DONE" in out and "no job control" not in out, out)
    out, status = with_terminal([*command("-t"), "--", "sh", "-c", "trap 'echo INTERRUPTED; exit 7' INT; echo go; "
                                 "while :; do sleep 0.1; done"], feed=b"\x03")
    # The Ctrl-C may come before the trap is set: then it ends the shell by the signal.
    check("Ctrl-C reaches the command", status in (7, 130), (out, status))


@case
def test_socket_as_stdin():
    """A socket as stdin could carry descriptors in, or be used to speak to whoever is at its other end."""
    import socket
    code = ("import os, socket\ntry:\n s = socket.socket(fileno=0); s.getpeername(); print('SOCKET')\n"
            "except OSError: print('PLAIN', os.read(0, 10).decode())")
    for where, prefix in (("outside", []), ("inside", [*command(), "--"])):
        a, b = socket.socketpair()
        a.sendall(b"hello")
        a.shutdown(socket.SHUT_WR)
        p = subprocess.run([*prefix, PYTHON, "-c", code], stdin=b, capture_output=True, env=env, timeout=30)
        want = b"SOCKET\n" if where == "outside" else b"PLAIN hello\n"
        same(f"a socket as standard input, {where}", p.stdout, want)


@case
def test_closed_streams():
    for fd in (0, 1, 2):
        p = subprocess.run(["sh", "-c", f'exec "$0" run -- true {fd}>&-' if fd else '"$0" run -- true <&-', pale],
                           env=env, capture_output=True, timeout=30)
        check(f"descriptor {fd} closed by the caller: it still runs", p.returncode == 0, p)


done()
