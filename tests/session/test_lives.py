"""What a session survives: time-outs, crashes, the deaths of its fronts, floods; and what becomes of it when its
supervisor dies. The complaints that people have about others' are each a case here. usage: test_lives.py PALE BOX [sanitized]"""
from cli import *

import json
import os
import signal
import subprocess
import time

IGNORE = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"


def supervisor(name):
    return show(name)["supervisor_pid"]


@case
def limits():
    new("--name", "l", "--timeout", "20s", "--grace", "200ms", "--memory", "256MiB")
    execute("l", "x = 5")
    done = execute("l", "while True: pass", "--timeout", "300ms")
    says("a time-out: 124, and what became of the variables", done, 124, "its time was up", "variables are kept")
    same("... which are there", execute("l", "x").stdout, "5\n")
    done = execute("l", IGNORE + "x = 6\nwhile True: pass", "--timeout", "300ms")
    says("a time-out of one that does not listen", done, 124, "as they were before it")
    same("... and the variables are as before it", execute("l", "x").stdout, "5\n")
    o = result("l", "import time; time.sleep(30)", "--timeout", "200ms")
    check("as JSON", o["outcome"] == "timeout" and o["how"] == "signal" and o["state"] == "kept" and o["exit_status"] == 124 and
          150 < o["wall_ms"] < 5000, o)
    done = execute("l", "y = bytearray(10**9)")
    # Without a control group of its own the kernel refuses it already.
    if not (os.getuid() and done.returncode == 1 and "MemoryError" in done.stderr):
        says("memory: 124, said so", done, 124, "memory was used up")
        o = result("l", "y = bytearray(10**9)")
        check("as JSON, no bare 137", o["outcome"] == "memory" and o["exit_status"] == 124 and o["state"] == "held", o)
        events = [e for e in log(show("l")["id"]) if e["event"] == "limit.hit"]
        check("... and in the log", events and events[0]["limit"] == "memory", events)
    same("what takes more memory than there is costs no variables", execute("l", "x").stdout, "5\n")
    done = execute("l", "while True: print('x' * 1000)")
    says("a flood of output is ended", done, 124, "printed more than it may")
    session("rm", "l")
    new("--name", "p", "--cpu-time", "500ms", "--grace", "200ms", "--no-rollback")
    execute("p", "x = 5")
    o = result("p", "while True: pass")
    check("processor time: of each execution", o["outcome"] == "cpu" and o["exit_status"] == 124 and o["wall_ms"] < 15000, o)
    check("... the next one has it again", result("p", "sum(range(10**6)); x")["outcome"] == "ok")
    o = result("p", IGNORE + "while True: pass", "--timeout", "300ms")
    check("without rollback, what does not listen costs the variables", o["state"] == "fresh" and o["how"] == "restart", o)
    says("... of which they are told", execute("p", IGNORE + "while True: pass", "--timeout", "300ms"), 124, "variables are gone")
    session("rm", "p")


@case
def interpreters_that_end():
    new("--name", "x", "--grace", "300ms")
    for what, code, status in (("exit()", "exit()", 0), ("exit(3)", "exit(3)", 3), ("sys.exit", "import sys; sys.exit('why')", 1)):
        execute("x", "kept = 1")
        done = execute("x", code)
        says(f"{what} ends the interpreter, with its status", done, status, "a fresh one")
        same("... and not the session", execute("x", "'kept' in globals()").stdout, "False\n")
    for what, code in (("a kill of itself", "import os; os.kill(os.getpid(), 9)"), ("a crash", "import ctypes; ctypes.string_at(0)"),
                       ("an end behind its back", "import os; os._exit(7)"), ("every descriptor closed", "import os; os.closerange(0, 100000)"),
                       ("a fork that stays", "import os\nif os.fork() == 0:\n    import time; time.sleep(1000)"),
                       ("endless recursion", "import sys; sys.setrecursionlimit(10**8)\ndef f(): f()\nf()"),
                       ("a raise of SystemExit in a thread", "import threading\nt = threading.Thread(target=exit); t.start(); t.join()")):
        began = time.monotonic()
        done = execute("x", code, "--timeout", "20s")
        took = time.monotonic() - began
        check(f"{what}: the execution ends, the session goes on", took < 15 and execute("x", "6 * 7").stdout == "42\n",
              (took, done.returncode, done.stdout, done.stderr, session("ls").stdout))
    done = execute("x", "import os; os.kill(os.getpid(), 9)")
    says("killed: 128 and the signal, and what became of the variables", done, 137, "signal 9", "the state before this execution is back")
    says("its own status else", execute("x", "import os; os._exit(7)"), 7, "status 7")
    id = show("x")["id"]
    execute("x", "import os; os.kill(-1, 9)")
    check("whoever kills everything in the box has ended it, which is in the log",
          wait_for(lambda: log(id)[-1]["event"] == "box.end"), log(id)[-3:])
    says("... and is told", execute("x", "1"), 125, "session")


@case
def fronts_that_die():
    new("--name", "f")
    front = start("exec", "f", "-c", "import time\nfor i in range(20):\n    print(i, flush=True); time.sleep(0.1)\n'end'")
    front.stdout.readline()
    n = show("f")["session"]["running"]
    other = start("exec", "f", "-c", "'the other'")
    front.kill()
    front.wait()
    done = session("output", "f", str(n), "--follow")
    check("a front that was killed: the execution goes on, and its output is there", done.returncode == 0 and
          done.stdout.split() == [str(i) for i in range(20)] + ["'end'"], (done.returncode, done.stdout))
    out, err = other.communicate(timeout=20)
    same("... and that of another front", (other.returncode, out), (0, "'the other'\n"))
    fronts = [start("exec", "f", "-c", f"import time; time.sleep(0.01); {i}") for i in range(8)]
    outs = [p.communicate(timeout=30)[0] for p in fronts]
    same("eight fronts at once, each its own", outs, [f"{i}\n" for i in range(8)])
    for _ in range(5):
        p = start("exec", "f", "-c", "import time; time.sleep(0.2)")
        time.sleep(0.05)
        p.kill()
        p.wait()
    same("fronts that come and die", execute("f", "'still'").stdout, "'still'\n")
    p = subprocess.Popen([pale, "session", "exec", "f", "-c", "while True: print('x' * 100)"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdout.read(1000)
    p.stdout.close()
    err = p.stderr.read()
    check("nobody reads what it prints: it is ended, as in a pipe", p.wait(timeout=30) == 125 and b"writing to stdout" in err and
          wait_for(lambda: show("f")["session"]["state"] == "idle"), err)
    for number, name in ((signal.SIGTERM, "SIGTERM"), (signal.SIGHUP, "SIGHUP")):
        p = start("exec", "f", "-c", "import time; time.sleep(1)")
        wait_for(lambda: show("f")["session"]["state"] == "busy")
        p.send_signal(number)
        out, err = p.communicate(timeout=10)
        check(f"{name} ends the front, not the execution", p.returncode == 128 + number and "goes on" in err and
              show("f")["session"]["state"] == "busy", (p.returncode, err))
        session("output", "f", "--follow")
    p = start("exec", "f", "-c", "import time; time.sleep(100)")
    wait_for(lambda: show("f")["session"]["state"] == "busy")
    session("rm", "f")
    out, err = p.communicate(timeout=20)
    check("a session that is removed: whoever waits is told, with an end", p.returncode == 125 and "session has ended" in err, err)


@case
def supervisors_that_die():
    new("--name", "s")
    info = show("s")
    p = start("exec", "s", "--stream", "-c", "import os, time\nprint('begun', flush=True)\nif os.fork(): time.sleep(100)\nelse:\n    os.setsid(); time.sleep(1000)")
    while "begun" not in p.stdout.readline():
        pass
    os.kill(info["supervisor_pid"], signal.SIGKILL)
    out, err = p.communicate(timeout=20)
    check("a supervisor that was killed: whoever waits is told at once", p.returncode == 125 and "has ended" in err, (p.returncode, err))
    check("... a stream has an end", "error" in json.loads(out.splitlines()[-1]), out)
    check("... the box dies whole", wait_for(lambda: not lives(info["pid"])), info)
    says("... its name leads to it still", execute("s", "1"), 125, '"s" has ended', info["id"], "pale session ls")
    says("... it is not listed", session("ls"), 0, "no sessions")
    says("... and can be removed, as others", session("rm", "-f", "s"), 0)
    subprocess.run([pale, "audit", "list"], env=env, capture_output=True)
    events = [e["event"] for e in log(info["id"])]
    check("... the log says so", "box.lost" in events, events[-3:])
    same("... and the name is free", new("--name", "s"), "s")
    check("another one", show("s")["id"] != info["id"])
    pid = supervisor("s")
    os.kill(pid, signal.SIGSTOP)
    try:
        p = start("new", "--name", "t")
        check("one that hangs keeps no other from its work", p.wait(timeout=30) == 0 and "\nt " in session("ls").stdout)
    finally:
        os.kill(pid, signal.SIGCONT)
    check("... and is there again when it goes on", execute("s", "1").stdout == "1\n")
    session("rm", "--all")


@case
def background():
    """Children that stay keep nothing open, and are not taken for the end; nor is it told before it has come."""
    new("--name", "b")
    began = time.monotonic()
    done = execute("b", "import subprocess\np = subprocess.Popen(['sleep', '1000'])\nq = subprocess.Popen(['sh', '-c', 'sleep 0.3; echo late'])")
    check("children in the background do not keep it open", done.returncode == 0 and time.monotonic() - began < 10, done)
    check("... and are there in the next one", execute("b", "print(p.poll())").stdout == "None\n")
    n = session("exec", "b", "-b", "-c", "import time; time.sleep(1); 'done'").stdout.strip()
    o = json.loads(session("output", "b", n, "--json").stdout)
    check("what runs has no status yet", o["state"] == "running" and "result" not in o, o)
    says("... and then has", session("output", "b", n, "--follow"), 0, "'done'")
    check("what a child printed late is somewhere", "late" in session("output", "b", str(int(n) - 2)).stdout
          + session("output", "b", str(int(n) - 1)).stdout + session("output", "b", n).stdout)
    session("rm", "b")


@case
def output():
    new("--name", "o", "--set", "limits.output=64KiB", "--grace", "300ms")
    o = result("o", "import sys\nfor i in range(50): print(i, flush=True); print(-i, file=sys.stderr, flush=True)")
    order = [line for e in o["events"] if e["type"] in ("stdout", "stderr") for line in e["text"].split()]
    same("the order of both streams is kept", order, [x for i in range(50) for x in (str(i), str(-i))])
    o = result("o", "for i in range(50000): print('line', i)\nraise ValueError('at the end')")
    out = printed(o)
    check("of much output head and tail are kept, and the error", out.startswith("line 0\n") and out.endswith("line 49999\n") and
          len(out) < 200000 and o["omitted_bytes"] > 0 and o["events"][-1]["type"] == "error", (len(out), o["omitted_bytes"]))
    done = session("output", "o")
    says("... which is said where it is", done, 1, "left out here", "at the end")
    o = result("o", "import sys; n = sys.stdout.buffer.write(bytes(range(256)))")
    check("bytes that are no text do not break the JSON", any("base64" in e for e in o["events"]), o)
    o = result("o", "print('\\x1b[31mred\\x1b[0m\\0')")
    same("escapes come as they are", printed(o), "\x1b[31mred\x1b[0m\0\n")
    pid = supervisor("o")
    done = execute("o", "while True: print('x' * 10000)")
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        rss = next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))
    check("a flood does not fill the supervisor", done.returncode == 124 and rss < (1 << 20 if sanitized else 64 << 10), (done.returncode, rss))
    session("rm", "o")


done()
