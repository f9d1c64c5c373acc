"""What users of such tools ran into with results, output and what goes on after the end."""
import hashlib
import json
import os
import re
import signal
import subprocess
import time

from case import *


@case
def test_exit_status():
    for code, want in (("exit 0", 0), ("exit 1", 1), ("exit 7", 7), ("exit 255", 255), ("exit 124", 124),
                       ("kill -TERM $$", 143), ("kill -KILL $$", 137), ("kill -SEGV $$", 139)):
        same(f"exit status of {code!r}", run("--", "sh", "-c", code).returncode, want)
        r = box("--", "sh", "-c", code)
        same(f"in the JSON, too, and how it ended: {code!r}", (r.all.get("exit_status"), r.outcome),
             (want, "signal" if want > 128 and want != 255 else "exit"))
    p = run("--", "no-such-command")
    check("127 for a command that is not there, with its name", p.returncode == 127 and b"no-such-command" in p.stderr, p)
    path = write("work/not-executable", "text\n", 0o644)
    p = run("--", path)
    check("126 for one that cannot be run", p.returncode == 126 and b"not-executable" in p.stderr, p)
    path = write("work/bad-interpreter", "#!/nonexistent/interp\n", 0o755)
    p = run("--", path)
    check("127 for an interpreter that is not there, with its name", p.returncode == 127 and b"/nonexistent/interp" in p.stderr, p)
    check("a wrong option is a usage error", run("--no-such-option", "true").returncode in (2, 125))


@case
def test_names_are_not_options():
    r = box("--", "echo", "--help", "-p", "--", "x\ny", "q\"'`$(id)")
    same("arguments arrive as they are", r.out, "--help -p -- x\ny q\"'`$(id)\n")
    r = box("--", "printf", "%s|", "", " ", "\u00fc", "-n")
    same("empty ones, too", r.out, "| |\u00fc|-n|")
    for name in ("-dash.sh", "new\nline.sh", "quo'te\"$(id).sh", "blank s.sh"):
        path = write(os.path.join("work", name), "#!/bin/sh\necho ran \"$#\"\n", 0o755)
        r = box("--", path, "a b")
        same(f"a script called {name!r}", r.out, "ran 1\n")
        os.unlink(path)


@case
def test_streams():
    data = os.urandom(3_000_000)
    p = run("--set", "limits.output_total=64MiB", "--", "cat", data=data)
    check("binary passes through unchanged", hashlib.sha256(p.stdout).digest() == hashlib.sha256(data).digest(),
          f"{len(p.stdout)} bytes, {p.stderr[:300]}")
    data = bytes(range(256)) * 4
    r = box("--", "cat", data=data)
    import base64
    check("binary in JSON is exact", base64.b64decode(r.all.get("stdout_base64", "")) == data, r)
    r = box("--", "printf", "\\033[31mred\\033[0m\\n")
    check("escape sequences are kept as data", r.out == "\x1b[31mred\x1b[0m\n", r)
    r = box("--", "cat", data=b"")
    same("an empty input ends", (r.status, r.out), (0, ""))
    code = "import os\nfor i in range(200): os.write(1, b'o%d\\n' % i); os.write(2, b'e%d\\n' % i)"
    r = py(code)
    got = "".join(c.get("text", "") for c in r.all.get("output", []))
    same("the order between stdout and stderr", got, "".join(f"o{i}\ne{i}\n" for i in range(200)))
    p = run("--", "sh", "-c", "exec <&-; cat", data=b"x")
    check("a command that closes its input does not hang", p.returncode != 124)
    p = subprocess.run(["sh", "-c", f"'{pale}' run -- yes | head -1"], env=env, capture_output=True, timeout=20)
    same("a reader that goes away ends it", p.stdout, b"y\n")


@case
def test_idle_input():
    """An input that gives something and then stays open must not stop the supervisor."""
    p = subprocess.Popen([*command("--timeout", "1s"), "--", "cat"], env=env, stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    p.stdin.write(b"first\n")
    p.stdin.flush()
    same("what comes is passed on at once", p.stdout.readline(), b"first\n")
    try:
        same("and the wall clock limit still holds", p.wait(10), 124)
    except subprocess.TimeoutExpired:
        p.kill()
        check("and the wall clock limit still holds", False)
    p.stdin.close()
    p.stdout.close()


@case
def test_long_output():
    r = py("for i in range(300000): print('line', i)\nraise SystemExit('the error is here')", "--output", "64KiB",
           "--set", "limits.output_total=64MiB")
    check("the end, where the error is, is kept", "the error is here" in r.err and "line 299999\n" in r.out, r.err)
    check("the beginning, too", r.out.startswith("line 0\nline 1\n"))
    check("what was left out is said", "left out" in r.out and r.all.get("stdout_omitted", 0) > 3_000_000, r.all.keys())
    check("and no more than the limit is kept", len(r.out) < 70000, len(r.out))
    r = box("--set", "limits.output_total=2MiB", "--", "sh", "-c", "yes; echo after")
    check("at the total the run is ended, and the outcome says so", r.status == 124 and r.outcome == "output", r)
    # The supervisor's own memory, while a flood passes.
    p = subprocess.Popen(["sh", "-c", f"'{pale}' run --json --timeout 5s --set limits.output_total=1GiB -- yes >/dev/null; :"],
                         env=env, stderr=subprocess.DEVNULL)
    most = 0
    for _ in range(20):
        time.sleep(0.1)
        for pid in processes(f"{pale}\0run\0--json\0--timeout\0" + "5s"):
            try:
                with open(f"/proc/{pid}/status") as f:
                    most = max([most] + [int(l.split()[1]) for l in f if l.startswith("VmRSS")])
            except OSError:
                pass
    p.terminate()
    for pid in processes(f"{pale}\0run\0--json\0--timeout\0" + "5s"):
        os.kill(pid, signal.SIGTERM)
    p.wait()
    # A sanitizer keeps a quarantine of what was freed.
    check("a flood of output does not fill the supervisor's memory", 0 < most < (600_000 if SANITIZED else 100_000), f"{most} KiB")


@case
def test_children_do_not_hold_it_open():
    mark = f"60{os.getpid()}"
    for what, code in (("a background child", f"sleep {mark} & echo main"),
                       ("a child with a session of its own", f"setsid sleep {mark} & echo main"),
                       ("a daemon", f"(setsid sh -c 'sleep {mark} & sleep {mark}' &) ; echo main"),
                       ("one that ignores signals", f"(trap '' TERM HUP INT; sleep {mark}) & echo main")):
        start = time.monotonic()
        r = box("--", "sh", "-c", code)
        took = time.monotonic() - start
        check(f"{what} does not keep the run open", r.out == "main\n" and r.status == 0 and took < 5, (took, r))
        check(f"{what} is said to have been killed", r.all.get("killed_leftovers", 0) >= 1, r.all)
        check(f"{what} is gone", wait_for(lambda: not processes("sleep\0" + mark)), processes("sleep\0" + mark))
    p = subprocess.Popen(["sh", "-c", f"sleep {mark} & echo main"], stdout=subprocess.PIPE)
    p.wait()
    wait_for(lambda: processes("sleep\0" + mark))
    left = processes("sleep\0" + mark)
    check("outside such a child lives on", left != [])
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    p.stdout.close()


@case
def test_the_end_of_the_supervisor():
    mark = f"70{os.getpid()}"

    def start():
        p = subprocess.Popen([*command("--timeout", "60s"), "--", "sh", "-c", f"trap '' TERM INT HUP; setsid sleep {mark} & sleep {mark}; :"],
                             env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        assert wait_for(lambda: len(processes("sleep\0" + mark)) >= 2), "it did not start"
        return p

    p = start()
    p.kill()
    p.wait()
    check("killed: nothing of the box is alive", wait_for(lambda: not processes("sleep\0" + mark), 2), processes("sleep\0" + mark))
    r = subprocess.run([pale, "audit", "list", "--json"], env=env, capture_output=True, text=True)
    # The next command closes the log.
    run("--", "true")
    r = subprocess.run([pale, "audit", "list", "--json"], env=env, capture_output=True, text=True)
    check("and the log says that the supervisor was lost", "lost" in r.stdout, r.stdout[-800:])
    for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        p = start()
        p.send_signal(sig)
        if sig == signal.SIGINT:  # the first is the command's to handle, as Ctrl-C is
            time.sleep(0.3)
            p.send_signal(sig)
        try:
            status = p.wait(10)
        except subprocess.TimeoutExpired:
            p.kill()
            status = None
        check(f"{sig.name}: it ends", status is not None and status != 0, status)
        check(f"{sig.name}: nothing of the box is alive", wait_for(lambda: not processes("sleep\0" + mark), 2))


@case
def test_limits_end_it():
    start = time.monotonic()
    r = py("import time\nprint('begun', flush=True)\ntime.sleep(60)", "--timeout", "1s")
    took = time.monotonic() - start
    check("wall clock: 124, and the outcome says which limit", r.status == 124 and str(r.outcome).startswith("wall") and took < 6, (took, r))
    check("what was printed before is kept", "begun" in r.out, r)
    r = py("while True: pass", "--cpu-time", "1s", "--timeout", "30s")
    check("processor time", r.status == 124 and str(r.outcome).startswith("cpu"), r)
    r = py("x = bytearray(1)\nwhile True: x += bytes(8 << 20)", "--memory", "128MiB")
    check("memory: refused or ended, and named", (r.status == 124 and r.outcome == "memory") or "MemoryError" in r.err, r)
    r = py("import os, time\nn = 0\ntry:\n  while n < 500:\n    if os.fork() == 0: time.sleep(20); os._exit(0)\n    n += 1\n"
           "except OSError as e: print('refused', n, e)", "--set", "limits.processes=20")
    check("processes: more are refused", "refused" in r.out and int(re.search(r"refused (\d+)", r.out)[1]) <= 20, r)
    r = py("try:\n  f = open('/tmp/x', 'wb')\n  for i in range(100): f.write(bytes(1 << 20)); f.flush()\nexcept OSError as e: print(e)",
           "--set", "limits.disk=16MiB")
    check("disk: no space left", "No space left" in r.out, r)


@case
def test_its_own_size():
    r = py("import os, re\nprint(os.cpu_count(), len(os.sched_getaffinity(0)), re.search(r'MemTotal: +(\\d+)', open('/proc/meminfo').read())[1], "
           "open('/proc/cpuinfo').read().count('processor\\t'))", "--cpus", "1", "--memory", "256MiB")
    same("os.cpu_count(), affinity, MemTotal and /proc/cpuinfo are the box's", r.out.strip(), f"1 1 {256 * 1024} 1")
    r = box("--cpus", "1", "--memory", "256MiB", "--", "sh", "-c", "nproc; free -m 2>/dev/null | awk '/Mem/{print $2}'; df -m /tmp | awk 'END{print $2}'",
            "--set", "limits.disk=32MiB")
    check("nproc and free, too", r.out.split()[:2] in (["1", "256"], ["1"]), r)
    p = outside("import re; print(re.search(r'MemTotal: +(\\d+)', open('/proc/meminfo').read())[1])")
    check("outside it is another", p.stdout.strip() != str(256 * 1024).encode())


@case
def test_neighbours():
    mark = f"80{os.getpid()}"
    p = subprocess.Popen([*command("--timeout", "60s"), "--", "sh", "-c", f"echo mine > /tmp/mine; echo ready; exec sleep {mark}"],
                         env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    same("a neighbour is there", p.stdout.readline(), b"ready\n")
    r = box("--", "sh", "-c", f"cat /tmp/mine; cat /proc/*/cmdline | tr '\\0' ' ' | grep 'sleep {mark}' | grep -v grep; kill -9 -1; echo end")
    check("its files and processes cannot be seen", "mine" not in r.out and f"exec sleep" not in r.out, r)
    check("and it survives", processes("sleep\0" + mark) != [])
    p.terminate()
    p.wait()
    p.stdout.close()


@case
def test_boxes_in_boxes():
    if SANITIZED:
        skip("a box in a box", "a sanitizer's shadow memory and leak check are more than a box permits")
        return
    flags = ("--ro", pale, "--timeout", "30s")
    p = run(*flags, "--", pale, "run", "--", "echo", "inner")
    lines = [l for l in p.stderr.decode(errors="replace").splitlines() if not l.startswith("pale: ") or "blocked" not in l]
    check("in the default profile: refused in clear words, or works",
          p.stdout == b"inner\n" or (p.returncode == 125 and 1 <= len(lines) <= 3), p)
    r = run(*flags, "--set", "kernel.profile=nested", "--", pale, "run", "--", "echo", "inner")
    check("in the nested profile: works, or refused in clear words", r.stdout == b"inner\n" or
          (r.returncode == 125 and r.stderr.count(b"\n") <= 4), r)


@case
def test_name_lookups_are_quick():
    code = ("import socket, time\nt = time.time()\ntry: socket.getaddrinfo('exfil.example.net', 443)\n"
            "except OSError as e: print('NO', e, time.time() - t < 2)")
    r = py(code)
    check("a name fails at once, with an ordinary error", "NO" in r.out and "True" in r.out, r)
    check("and is reported", r.was_blocked("exfil.example.net"), r.blocked)
    r = py("import socket\ntry: socket.create_connection(('203.0.113.7', 443), 3)\nexcept OSError as e: print('NO', e)")
    check("so does an address", "NO" in r.out and r.was_blocked("203.0.113.7"), r)


@case
def test_stopped():
    """Ctrl-Z: with the supervisor, which watches the limits, all of the box stands still, in whatever session it is."""
    code = ("import os, time\nif os.fork() == 0:\n os.setsid()\n while True: print(time.monotonic(), flush=True); time.sleep(.02)\n"
            "time.sleep(2)")
    p = subprocess.Popen(command("--", PYTHON, "-c", code), env=env, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    first = p.stdout.readline()
    os.kill(p.pid, signal.SIGTSTP)
    state = lambda: open(f"/proc/{p.pid}/stat").read().rsplit(")", 1)[1].split()[0]
    stopped = wait_for(lambda: state() == "T")
    time.sleep(0.7)
    os.kill(p.pid, signal.SIGCONT)
    out = (first + p.communicate(timeout=30)[0]).split()
    gaps = [float(b) - float(a) for a, b in zip(out, out[1:])]
    check("it stops, the box with it, and goes on", stopped and p.returncode == 0 and len(gaps) > 10 and max(gaps) > 0.6,
          (p.returncode, len(gaps), max(gaps, default=0)))


@case
def test_output_that_nobody_takes():
    """The box has ended, what it wrote waits for a reader: a signal ends that, and the run's log is whole."""
    p = subprocess.Popen(command("--", "head", "-c", "120000", "/dev/zero"), env=env, cwd=work, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    children = lambda: open(f"/proc/{p.pid}/task/{p.pid}/children").read().strip()
    active = os.path.join(env["PALE_STATE_DIR"], "active")
    check("the box ends while its output waits", wait_for(lambda: os.listdir(active) and not children()) and p.poll() is None)
    os.kill(p.pid, signal.SIGTERM)
    check("a signal ends the waiting", wait_for(lambda: p.poll() is not None))
    same("the status is the command's, and the run is closed", (p.returncode, os.listdir(active)), (0, []))
    p.communicate()


done()
