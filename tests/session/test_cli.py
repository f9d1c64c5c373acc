"""pale session from the outside: what each command prints, its exit status, its JSON; what becomes of a session
when fronts and supervisors die. usage: test_cli.py PALE BOX"""
from cli import *

import json
import os
import re
import signal
import subprocess
import time


@case
def help_texts():
    done = session("--help")
    names = re.findall(r"^  session (\w+)", done.stdout, re.M)
    check("the group's help names its commands", done.returncode == 0 and {"new", "exec", "ls", "rm"} <= set(names), done.stdout)
    for name in names:
        done = session(name, "--help")
        check(f"pale session {name} --help has exit statuses and fits 100 columns",
              done.returncode == 0 and "xit status" in done.stdout and max(map(len, done.stdout.splitlines())) <= 100, done.stdout)
        says(f"pale session {name}: an unknown option", session(name, "--nonsense"), 2, "--help")


@case
def begin_and_end():
    says("none runs", session("ls"), 0, "no sessions")
    same("... nothing as JSON", session("ls", "--json").stdout, "")
    says("... and none can be left out", session("show"), 125, "no session runs", "pale session new")
    done = session("new", "--name", "work")
    same("new prints the name", (done.returncode, done.stdout, done.stderr), (0, "work\n", ""))
    done = session("new", "--json", "--kernel", "python", "--idle", "1h", "--lifetime", "2h", "--grace", "300ms")
    o = json.loads(done.stdout)
    check("new --json has id, name, kernel and ready_ms", set(o) == {"id", "name", "kernel", "ready_ms"} and len(o["id"]) == 26
          and o["name"] is None and o["kernel"] == "python" and 0 < o["ready_ms"] < 60000, done.stdout)
    listed = [json.loads(line) for line in session("ls", "--json").stdout.splitlines()]
    check("ls --json has both", [i["session"]["name"] for i in listed] == ["work", None] and listed[1]["id"] == o["id"], listed)
    check("... with the options given", listed[1]["session"]["idle_limit_ms"] == 3600000, listed)
    table = session("ls").stdout.splitlines()
    check("ls is a table", table[0].split()[:4] == ["NAME", "ID", "KERNEL", "STATE"] and table[1].split()[:4:3] == ["work", "idle"]
          and len(table) == 3, table)
    says("a name that is taken", session("new", "--name", "work"), 1, "runs already", "pale session rm work")
    for name in ("last", "", "-x", "a/b", "ä", "x" * 65):
        says(f"no name: {name[:9]!r}", session("new", f"--name={name}"), 2, "is no name")
    for what, ref in (("its id", o["id"]), ("a beginning of its id", o["id"][:25]), ("last", "last")):
        check(f"a session is found by {what}", show(ref)["id"] == o["id"])
    check("... and by its name", show("work")["session"]["name"] == "work")
    says("of two, which has to be said", session("show"), 2, "2 sessions run", o["id"])
    done = session("rm", o["id"], "none-such")
    says("rm of one that is not there", done, 1, "no session", "none-such")
    check("... and the other is gone, whole", not lives(listed[1]["supervisor_pid"]) and not lives(listed[1]["pid"]))
    says("-f does not mind", session("rm", "-f", "none-such"), 0)
    check("without SESSION, the only one", show("work")["id"] == json.loads(session("show", "--json").stdout)["id"])
    says("rm needs to know", session("rm"), 2, "--all")
    says("... not both", session("rm", "--all", "work"), 2, "exclude")
    says("rm --all", session("rm", "--all"), 0)
    says("... ends all", session("ls"), 0, "no sessions")
    events = [e["event"] for e in log(listed[0]["id"])]
    check("the log is whole", events[0] == "box.start" and "session.ready" in events and events[-1] == "box.end", events)
    for args in (("exec", "work", "-c", "1"), ("output", "work"), ("interrupt", "work"), ("show", "work"), ("undo", "work"),
                 ("restart", "work"), ("freeze", "work"), ("thaw", "work")):
        done = session(*args, "--json")
        message = json.loads(done.stdout)["error"]["message"]
        says(f"{args[0]}: it has ended, also as JSON", done, 125, "pale session ls" if args[0] != "exec" else "pale: ", message)


@case
def wrong_usage():
    for args in (("new", "x"), ("new", "--idle", "soon"), ("new", "--kernel", "cobol"), ("exec",), ("exec", "x"), ("exec", "x", "-c", "1", "f"),
                 ("exec", "x", "f", "g"), ("exec", "x", "--json", "--stream", "-c", "1"), ("exec", "x", "--timeout", "0", "-c", "1"),
                 ("exec", "x", "--timeout", "soon", "-c", "1"), ("exec", "x", "-b", "--display", "d", "-c", "1"), ("exec", "x", "-i", "-"),
                 ("output", "x", "0"), ("output", "x", "one"), ("output", "x", "1", "2"), ("output", "x", "--from", "-1"),
                 ("interrupt", "x", "y"), ("interrupt", "x", "--escalate", "hard"), ("interrupt", "x", "--grace", "soon"),
                 ("interrupt", "x", "--execution", "0"), ("ls", "x"), ("show", "x", "y"), ("undo", "x", "y")):
        done = session(*args)
        check(f"pale session {' '.join(args)}: wrong usage", done.returncode == 2 and done.stderr.startswith("pale"), (done.returncode, done.stderr))


@case
def executions():
    new("--name", "e")
    same("what it prints", execute("e", "x = 6 * 7\nprint('a')").stdout, "a\n")
    done = execute("e", "x")
    same("state stays, and the value of a last expression is printed", (done.returncode, done.stdout, done.stderr), (0, "42\n", ""))
    same("None is not", execute("e", "None").stdout, "")
    done = execute("e", "print('p', end=''); 1 / 0")
    check("an error: 1, and the traceback on stderr, without colours", done.returncode == 1 and done.stdout == "p" and
          done.stderr.rstrip().endswith("ZeroDivisionError: division by zero") and "\033" not in done.stderr, done.stderr)
    with open("f.py", "w", encoding="utf-8") as f:
        f.write("# -*- coding: utf-8 -*-\nprint('file', x, 'ä')\n")
    same("code from a file", session("exec", "e", "f.py").stdout, "file 42 ä\n")
    same("code from standard input", session("exec", "e", "-", input="x + 1").stdout, "43\n")
    same("no code", (execute("e", "").returncode, session("exec", "e", "/dev/null").returncode), (0, 0))
    says("a file that is not there", session("exec", "e", "none.py"), 2, "none.py")
    done = subprocess.run([pale, "session", "exec", "e", "-"], env=env, input=b"print('\xff')", capture_output=True)
    check("code that is no text", done.returncode == 2 and b"UTF-8" in done.stderr, done.stderr)
    done = subprocess.run([pale, "session", "exec", "e", "-c", "import sys; n = sys.stdout.buffer.write(bytes([0, 255, 10]))"], env=env, capture_output=True)
    same("output that is no text comes as it is", done.stdout, b"\0\xff\n")
    o = result("e", "import sys\nprint('o', flush=True); n = sys.stderr.write('e\\n'); x")
    check("--json has the result and the events in order", o["outcome"] == "ok" and o["exit_status"] == 0 and o["state"] == "kept" and
          [e["type"] for e in o["events"] if e["type"] != "started"] == ["stdout", "stderr", "result"] and value(o) == "42", o)
    o = result("e", "raise ValueError('v')")
    check("--json of an error", o["outcome"] == "error" and o["exit_status"] == 1 and
          [(e["name"], e["message"]) for e in o["events"] if e["type"] == "error"] == [("ValueError", "v")], o)
    lines = [json.loads(line) for line in execute("e", "print('s'); x", "--stream").stdout.splitlines()]
    check("--stream: the number first, the result last", lines[0]["type"] == "execution" and lines[0]["execution"] > 5 and
          lines[-1]["type"] == "end" and lines[-1]["result"]["execution"] == lines[0]["execution"] and
          {"stdout", "result"} <= {e["type"] for e in lines}, lines)
    done = execute("e", "import time\nprint('first', flush=True); time.sleep(1.5); print('then')", "--background")
    n = done.stdout.strip()
    check("--background prints a number and leaves", n.isdigit() and done.returncode == 0, done.stdout)
    wait_for(lambda: "first" in session("output", "e", n).stdout)
    says("output, while it runs", session("output", "e", n), 0, "first\n", "still runs")
    done = session("output", "e", n, "--follow")
    same("output --follow, to the end", (done.returncode, done.stdout), (0, "first\nthen\n"))
    o = json.loads(session("output", "e", n, "--json", "--from", "2").stdout)
    check("output --json --from", o["state"] == "done" and all(e["n"] >= 2 for e in o["events"]) and o["result"]["outcome"] == "ok", o)
    same("without a number, the newest", session("output", "e").stdout, "first\nthen\n")
    says("an execution that was not", session("output", "e", "999"), 125, "999")
    o = show("e")["session"]
    check("show has the history", o["history"][0]["code"] == "x = 6 * 7" and o["history"][0]["outcome"] == "ok" and o["state"] == "idle", o)
    says("... for people", session("show", "e"), 0, "error", "x = 6 * 7", "python")
    events = [e for e in log(show("e")["id"]) if e["event"].startswith("exec.")]
    check("the log has each execution, whole, before it runs", events[0]["event"] == "exec.start" and events[0]["code"] == "x = 6 * 7\nprint('a')"
          and events[1]["event"] == "exec.end" and events[1]["outcome"] == "ok", events[:2])
    session("rm", "e")


@case
def interrupts():
    new("--name", "i", "--grace", "300ms")
    execute("i", "x = 5")
    says("interrupt, where nothing runs", session("interrupt", "i"), 0, "nothing runs")
    n = session("exec", "i", "-b", "-c", "import time; time.sleep(100)").stdout.strip()
    wait_for(lambda: show("i")["session"]["state"] == "busy")
    done = session("interrupt", "i")
    says("interrupt waits, and says how it ended", done, 0, f"execution {n} was interrupted")
    says("... the execution is interrupted", session("output", "i", n), 130, "KeyboardInterrupt")
    ignores = "import signal, time; x = 6; signal.signal(2, signal.SIG_IGN)\nwhile True: time.sleep(1)"
    n = session("exec", "i", "-b", "-c", ignores).stdout.strip()
    wait_for(lambda: "started" in session("output", "i", n, "--json").stdout)
    time.sleep(0.2)
    done = session("interrupt", "i", "--escalate", "none")
    says("--escalate none: it may go on", done, 1, "goes on", "--escalate restart")
    o = json.loads(session("interrupt", "i", "--json").stdout)
    check("one that does not listen is taken back", o["interrupted"] and o["how"] == "rollback" and o["result"]["state"] == "held", o)
    same("... and the variables are as before it", execute("i", "x").stdout, "5\n")
    n = session("exec", "i", "-b", "--no-rollback", "-c", ignores).stdout.strip()
    wait_for(lambda: "started" in session("output", "i", n, "--json").stdout)
    time.sleep(0.2)
    m = session("exec", "i", "-b", "-c", "1").stdout.strip()
    says("one that only waits is not begun", session("interrupt", "i", "--execution", m), 0, f"execution {m} has ended")
    says("without rollback it goes on", session("interrupt", "i", "--grace", "100ms"), 1, "goes on")
    says("... but for --escalate restart", session("interrupt", "i", "--escalate", "restart", "--execution", n), 0, "variables are gone")
    same("... and there is a fresh one", execute("i", "'x' in globals()").stdout, "False\n")
    events = [e for e in log(show("i")["id"]) if e["event"] == "exec.interrupt"]
    check("the log has them", events and events[0]["cause"] == "interrupt" or events[0]["cause"] == "interrupted", events)
    session("rm", "i")


@case
def undo_restart_freeze():
    new("--name", "u")
    says("nothing to undo", session("undo", "u"), 1, "cannot be undone")
    execute("u", "x = 1")
    execute("u", "x = 2; open('left', 'w').close()")
    says("undo", session("undo", "u"), 0, "was undone: variables, and 1 file, are as they were before it")
    same("... the variables are as before, and files", execute("u", "import os; x, os.path.exists('left')").stdout, "(1, False)\n")
    o = json.loads(execute("u", "x = 3; open('left', 'w').close()", "--no-rollback", "--json").stdout)
    check("... of which each execution says what it changed", [(f["path"].rsplit("/")[-1], f["change"]) for f in o["files"]] == [("left", "added")], o)
    says("what was not held cannot be undone, and it says why", session("undo", "u"), 1, "without rollback")
    execute("u", "x = 4", "--rollback")
    o = json.loads(session("undo", "u", "--json").stdout)
    check("undo --json", o["undone"] > 0 and execute("u", "x").stdout == "3\n", o)
    says("restart", session("restart", "u"), 0, "fresh")
    same("... variables are gone, files are there", execute("u", "import os; 'x' in globals(), os.path.exists('left')").stdout, "(False, True)\n")
    execute("u", "import time; x = time.monotonic(), time.time()")
    n = session("exec", "u", "-b", "--timeout", "5s", "-c", "import time; time.sleep(1); 'slept'").stdout.strip()
    wait_for(lambda: "started" in session("output", "u", n, "--json").stdout)
    says("freeze", session("freeze", "u"), 0, "frozen")
    says("... twice is once", session("freeze", "u"), 0, "frozen")
    check("show and ls say so", show("u")["session"]["state"] == "frozen" and " frozen " in session("ls").stdout)
    time.sleep(1.5)
    check("nothing runs meanwhile", "slept" not in session("output", "u", n).stdout)
    says("what would need it says what to do", session("undo", "u"), 1, "thaw")
    says("thaw", session("thaw", "u"), 0)
    says("... it goes on", session("output", "u", n, "--follow"), 0, "slept")
    o = result("u", "time.time()")
    check("... with the host's clock", abs(float(value(o)) - time.time()) < 5, o)
    session("freeze", "u")
    says("a frozen one can be removed", session("rm", "u"), 0)


def rules(o):
    return [h["rule"] for h in o["hints"]]


@case
def a_refusal_explains_itself():
    os.makedirs("shown", exist_ok=True)
    new("--name", "h", "--ro", "shown", "--processes", "12", "--disk", "4MiB", "--memory", "300MiB")
    for what, code, rule, remedy in (
            ("a write to what is shown", f"open('{tmp}/shown/x', 'w')", "files", "--overlay DIR"),
            ("a file of the host", "open('/var/lib/dpkg/status')", "files", "--ro PATH"),
            ("what a program in it says", "import subprocess, sys; sys.exit(subprocess.run(['cat', '/var/lib/dpkg/status']).returncode)", "files", "--ro PATH"),
            ("a disk that is full", "open('/tmp/big', 'wb').write(bytes(8 << 20))", "limits.disk", "--disk"),
            ("processes", "import subprocess\np = []\ntry:\n    for i in range(20): p.append(subprocess.Popen(['sleep', '9']))\n"
             "finally: [x.kill() or x.wait() for x in p]", "limits.processes", "--processes"),
            ("memory", "x = bytearray(1 << 40)", "limits.memory", "--memory"),
            ("a call that is refused", "import os; os.unshare(os.CLONE_NEWUSER) if hasattr(os, 'unshare') else None\nimport ctypes\n"
             "ctypes.CDLL(None).unshare(0x10000000); raise SystemExit(3)", "kernel.profile", "kernel.profile=nested")):
        o = result("h", code)
        check(f"{what}: fails, with the rule and what changes it", o["exit_status"] != 0 and rules(o).count(rule) == 1 and
              any(remedy in h["text"] for h in o["hints"]), (o["exit_status"], o["hints"], o["events"][-1:]))
        if rule == "limits.disk":
            execute("h", "import os; os.unlink('/tmp/big')")
    o = result("h", "while True: pass", "--timeout", "200ms")
    check("time", o["outcome"] == "timeout" and rules(o) == ["limits.wall"], o["hints"])
    done = execute("h", "open('/var/lib/dpkg/status')")
    says("in a line for people, too", done, 1, 'pale: hint: files: "/var/lib/dpkg/status" is not in the box', "--ro PATH")
    check("not with --quiet", "hint" not in execute("h", "open('/var/lib/dpkg/status')", "--quiet").stderr)
    same("an execution is not told of those before it", result("h", "1 / 0")["hints"], [])
    same("one that ends well is told nothing", result("h", "try: open('/var/lib/dpkg/status')\nexcept OSError as e: print(e, file=__import__('sys').stderr)")["hints"], [])
    same("a file that is missing from the box's own is no refusal", result("h", "open('/tmp/none')")["hints"], [])
    o = result("h", "raise OSError('No such file or directory: \\'/\\x1b[31mred')")
    check("what the code makes up is quoted", rules(o) == ["files"] and "\\x1b[31m" in o["hints"][0]["text"], o["hints"])
    check("the log has what happened, and no advice", all("hints" not in e for e in log(show("h")["id"])))
    session("rm", "h")


@case
def the_policy_reaches_the_box():
    os.makedirs("data", exist_ok=True)
    with open("data/in.csv", "w", encoding="utf-8") as f:
        f.write("a,b\n")
    with open("policy.json", "w", encoding="utf-8") as f:
        json.dump({"pale": 1, "limits": {"wall": "20s"}, "session": {"imports": ["decimal"], "idle": "1h"}}, f)
    new("--name", "p", "-p", "policy.json", "--ro", "data", "--env", "WORD=said", "--cpus", "1", "--processes", "40", "--import", "json,os.path", "--import", "csv")
    same("a file that is shown, and a variable", execute("p", f"import os; open('{tmp}/data/in.csv').read(), os.environ['WORD']").stdout, "('a,b\\n', 'said')\n")
    done = execute("p", f"open('{tmp}/data/out.csv', 'w')")
    check("read-only", done.returncode == 1 and "Read-only" in done.stderr and not os.path.exists("data/out.csv"), done.stderr)
    done = execute("p", "import socket; socket.create_connection(('192.0.2.1', 80), 5)")
    says("no network, and what was blocked is said", done, 1, "Network is unreachable", 'pale: blocked: connect to "192.0.2.1", port 80', "pale audit show")
    o = result("p", "try: socket.create_connection(('192.0.2.1', 81), 5)\nexcept OSError: pass")
    check("... also in JSON, of each execution its own", [b["port"] for b in o["blocked"]] == [81], o["blocked"])
    same("... not again with the next one", result("p", "1")["blocked"], [])
    same("processors as the policy says", execute("p", "import os; len(os.sched_getaffinity(0))").stdout, "1\n")
    same("modules are there ahead", execute("p", "import sys; all(m in sys.modules for m in ('decimal', 'json', 'os.path', 'csv'))").stdout, "True\n")
    info = show("p")
    check("limits", info["limits"]["wall_ms"] == 20000 and info["session"]["idle_limit_ms"] == 3600000, info)
    events = log(info["id"])
    check("what flags add to a policy is in the log", any(e["event"] == "policy.widened" for e in events), [e["event"] for e in events])
    session("rm", "p")
    done = session("new", "--import", "decimal", "--timeout", "10ms")
    check("importing ahead is charged to no execution", done.returncode == 0, done.stderr)
    session("rm", "--all")
    for what, args, status, text in (("a policy that is wrong", ("-p", "./none.yaml"), 2, "none.yaml"), ("a source that is not there", ("--ro", "./none"), 2, "none"),
                                     ("what is no module's name", ("--import", "a b;"), 2, "--import")):
        done = session("new", *args, "--json")
        check(f"{what}: told, also as JSON", done.returncode == status and text in json.loads(done.stdout)["error"]["message"], (done.returncode, done.stdout))
    says("... and nothing is left", session("ls"), 0, "no sessions")
    new("--name", "m", "--import", "no_such_module")
    says("a module that is not there is told with the first execution", execute("m", "1"), 0, "1\n", "pale: ", "no_such_module")
    session("rm", "m")


@case
def asked_and_shown():
    new("--name", "q")
    done = execute("q", "input('name? ')")
    check("without input there is none", done.returncode == 1 and "EOFError" in done.stderr, done.stderr)
    done = execute("q", "input('a? '), input('b? '), input()", "--input", input="one\ntwo\n\nrest")
    same("--input: a line each", done.stdout, "('one', 'two', '')\n")
    check("... prompts on stderr", "a? b? " in done.stderr, done.stderr)
    same("... the last without an end of line", execute("q", "input()", "-i", input="three").stdout, "'three'\n")
    with open("lines", "w", encoding="utf-8") as f:
        f.write("ä\n")
    with open("lines", encoding="utf-8") as f:
        same("... from a file", execute("q", "input()", "-i", stdin=f).stdout, "'ä'\n")
    o = json.loads(execute("q", "input('x'), input('y')", "-i", "--json", input="1\n2\n").stdout)
    check("with --json", value(o) == "('1', '2')" and [e["prompt"] for e in o["events"] if e["type"] == "input"] == ["x", "y"], o)
    code = """
class P:
    def _repr_png_(self): return b'\\x89PNG' + bytes(3000)
    def _repr_html_(self): return '<b>bold</b>'
    def __repr__(self): return '<P>'
"""
    execute("q", code)
    done = execute("q", "P()")
    check("a picture: its text, and how to have it", done.stdout == "<P>\n" and "[image/png, 2.9KiB: --display DIR saves it]" in done.stderr, done.stderr)
    done = execute("q", "P()", "--display", "shown")
    n = show("q")["session"]["executions"]
    check("--display writes all forms", sorted(os.listdir("shown")) == [f"exec-{n}-1.html", f"exec-{n}-1.png"] and
          open(f"shown/exec-{n}-1.png", "rb").read() == b"\x89PNG" + bytes(3000) and open(f"shown/exec-{n}-1.html").read() == "<b>bold</b>", os.listdir("shown"))
    check("... and says where", f"shown/exec-{n}-1.png" in done.stderr, done.stderr)
    same("... also later", (session("output", "q", str(n), "--display", "again").returncode, len(os.listdir("again"))), (0, 2))
    os.makedirs("linked", exist_ok=True)
    os.symlink(f"{tmp}/lines", f"linked/exec-{n}-1.png")
    session("output", "q", str(n), "--display", "linked")
    check("... over what is there, through nothing", open("lines", encoding="utf-8").read() == "ä\n" and not os.path.islink(f"linked/exec-{n}-1.png"))
    done = execute("q", "P()", "--display", "/proc/none")
    check("where it cannot be written, that is said", "cannot write what is shown" in done.stderr and done.returncode == 0, done.stderr)
    says("--quiet", execute("q", "P()", "-q"), 0, "<P>")
    same("... says nothing of its own", execute("q", "exit(4)", "-q").stderr, "")
    session("rm", "q")


@case
def in_the_log():
    def audit(*args):
        return subprocess.run([pale, "audit", *args], env=env, capture_output=True, text=True)

    def of(run):
        return [json.loads(line) for line in audit("list", "--json").stdout.splitlines() if json.loads(line)["id"] == run]

    ids = []
    for _ in range(2):
        ids.append(json.loads(session("new", "--name", "logged", "--json", "--kernel", "bash").stdout)["id"])
        same("a session is found in the log by its name", audit("show", "logged", "--json").stdout.split('"run":"')[1][:26], ids[-1])
        session("rm", "logged")
    same("also when it has ended: the last of that name", audit("show", "logged", "--json").stdout.split('"run":"')[1][:26], ids[-1])
    same("the name is in the list", [of(run)[0]["session"] for run in ids], ["logged"] * 2)
    check("for people, too", "  logged: " in audit("list").stdout and "\nsession   logged\n" in audit("show", ids[0]).stdout, audit("show", ids[0]).stdout)
    check("what is no name of any is told", audit("show", "no-such").returncode == 125 and "no run" in audit("show", "no-such").stderr, audit("show", "no-such"))
    done = session("new", "--ro", "/no/such/place")
    check("what is wrong with a flag names it", done.returncode and "--ro: " in done.stderr and "policy.json" not in done.stderr, done.stderr)


@case
def the_readme():
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    with open(f"{top}/README.md", encoding="utf-8") as f:
        text = f.read()
    lines = re.search(r"^### A session.*?^```\n(.*?)^```", text, re.M | re.S).group(1).splitlines()
    os.makedirs("readme", exist_ok=True)
    with open("readme/data.csv", "w", encoding="utf-8") as f:
        f.write("a\n")
    outs = []
    for line in lines:
        p = subprocess.run(["bash", "-c", line], env=env | {"PATH": os.path.dirname(pale) + ":" + env["PATH"]}, cwd="readme",
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        outs.append((p.returncode, p.stdout))
    same("the lines of the README work", outs, [(0, "work\n"), (0, ""), (0, "42\n"), (124, ""), (0, ""), (0, "")])


done()
