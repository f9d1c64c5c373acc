"""A refusal explains itself: the end of a run's standard error names Pale, the rule and what changes it, and so
does the JSON; with that change there is no refusal. The kinds are those that everyday code runs into."""
from case import *

write("work/seen.txt", "seen\n")
outside_file = "/var/lib/dpkg/status"  # for all to read, and in no box


def told(what, code, rule, remedy, *args, fixed=None, lang=PYTHON, said=None):
    """`code` is refused with `args`; with `fixed` instead of them it is not, and nothing is said."""
    command = [lang, "-c", code]
    p = run(*args, "--", *command)
    lines = [l for l in p.stderr.decode(errors="replace").splitlines() if "pale: " in l]
    check(f"{what}: fails", p.returncode != 0, p)
    check(f"{what}: standard error names Pale, the rule and the remedy",
          any(rule in l for l in lines) and any(remedy in l for l in lines), "\n".join(lines) or p)
    r = box(*args, "--", *command)
    if said:
        check(f"{what}: the JSON, too", r.was_blocked(said), r)
    else:
        hints = [h for h in r.all.get("hints", []) if h["rule"] == rule]
        check(f"{what}: the JSON, too", len(hints) == 1 and remedy in hints[0]["text"], r.all.get("hints"))
    if fixed is not None:
        p = run(*fixed, "--", *command)
        check(f"{what}: with the remedy it works, and nothing is said", p.returncode == 0 and b"pale: hint" not in p.stderr and
              b"pale: blocked" not in p.stderr, p)
    p = run("-q", *args, "--", *command)
    check(f"{what}: nothing with --quiet", b"pale: hint" not in p.stderr, p)


@case
def test_files():
    told("a write to /usr", "open('/usr/lib/x', 'w')", "files", "--overlay DIR")
    told("a write to what is shown", "open('seen.txt', 'a').write('x')", "files", "--overlay DIR", "--ro", ".",
         fixed=["--overlay", "."])
    told("a shell's write", "echo x >>seen.txt", "files", "--rw DIR", "--ro", ".", fixed=["--overlay", "."], lang="/bin/sh")
    told("a file of the host", f"open({outside_file!r})", "files", "--ro PATH", fixed=["--ro", outside_file])
    told("an ssh key", "cat /root/.ssh/id_ed25519", "files", "--ro PATH", lang="/bin/sh")
    p = run("--", PYTHON, "-c", "open('/tmp/none')")
    check("a file that is missing from the box's own is no refusal", b"pale: hint" not in p.stderr and p.returncode == 1, p)
    p = run("--ro", ".", "--", PYTHON, "-c", "open('none')")
    check("nor one missing from what is shown", b"pale: hint" not in p.stderr and p.returncode == 1, p)
    p = run("--", PYTHON, "-c", f"import sys; sys.stderr.write('No such file or directory: \\'/\\x1b[31m{'x' * 300}'); sys.exit(1)")
    check("what the box makes up is quoted", b"\\x1b[31m" in p.stderr.split(b"pale: hint")[-1] and b"pale: hint" in p.stderr, p)
    p = run("--", PYTHON, "-c", "import sys; sys.stderr.write('Read-only file system')")
    check("a run that ends well is told nothing", b"pale: hint" not in p.stderr and p.returncode == 0, p)


@case
def test_network():
    told("a connection", "import socket; socket.create_connection(('192.0.2.1', 443), 3)", "no rule", "--allow '192.0.2.1:443'",
         said="192.0.2.1:443")
    told("a name", "import socket; socket.create_connection(('www.example.org', 443), 3)", "no rule", "--allow 'www.example.org'",
         said="www.example.org")


@case
def test_limits():
    sleep = "import subprocess\nfor p in [subprocess.Popen(['sleep', '0.3']) for _ in range(20)]: p.wait()"
    told("processes", sleep, "limits.processes", "--processes", "--processes", "10", fixed=["--processes", "64"])
    told("threads", "import threading, time\nfor _ in range(20): threading.Thread(target=time.sleep, args=(0.3,)).start()",
         "limits.processes", "--processes", "--processes", "10", fixed=["--processes", "64"])
    if not SANITIZED:
        told("memory", "x = b'x' * (200 << 20)", "limits.memory", "--memory", "--memory", "100MiB", fixed=["--memory", "500MiB"])
    told("disk", "open('/tmp/x', 'wb').write(bytes(5 << 20))", "limits.disk", "--disk", "--disk", "2MiB", fixed=["--disk", "20MiB"])
    told("many files", "for i in range(500): open(f'/tmp/{i}', 'w')", "limits.inodes", "--set limits.inodes=NUMBER",
         "--set", "limits.inodes=256", fixed=["--set", "limits.inodes=2000"])
    told("a large file", "open('/tmp/x', 'wb').write(bytes(3 << 20))", "limits.file_size", "--set limits.file_size=SIZE",
         "--set", "limits.file_size=1MiB", fixed=["--set", "limits.file_size=8MiB"])
    told("open files", "x = [open('/dev/null') for _ in range(40)]", "limits.open_files", "--set limits.open_files=NUMBER",
         "--set", "limits.open_files=32", fixed=["--set", "limits.open_files=64"])
    told("time", "import time; time.sleep(1.5)", "limits.wall", "--timeout", "--timeout", "500ms", fixed=["--timeout", "20s"])
    told("processor time", "while True: pass", "limits.cpu", "--cpu-time", "--cpu-time", "300ms")
    told("output", "print('x' * 200000)", "limits.output_total", "--set limits.output_total=SIZE",
         "--set", "limits.output_total=4KiB", fixed=["--set", "limits.output_total=1MiB"])
    code = "import socket, sys\na, b = socket.socketpair(); a.setblocking(False); a.recv(1)"
    p = run("--", PYTHON, "-c", code)
    check("a socket that would block is no limit on processes", b"temporarily unavailable" in p.stderr and
          b"limits.processes" not in p.stderr, p)


@case
def test_calls():
    told("namespaces", "exec unshare -U true", "kernel.profile", "kernel.profile=nested", fixed=["--set", "kernel.profile=nested"],
         lang="/bin/sh")
    told("a socket, where they are refused", "import socket; socket.socket()", "kernel.profile", "kernel.profile=default",
         "--set", "kernel.profile=strict", fixed=[])
    p = run("--", PYTHON, "-c", "import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall(323, 0) < 0)")
    check("a call that no profile allows", b"in every profile" in p.stderr, p)


done()
