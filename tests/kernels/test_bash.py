"""The kernel of bash: the host program, bash and its start-up file, without a box.

usage: test_bash.py HOST START-UP-FILE
"""
import json
import os
import random
import signal
import subprocess
import sys
import time

from kernel import *

HOST, DRIVER = map(os.path.abspath, sys.argv[1:3])
BASH = "/bin/bash"


def bash(**more):
    return Kernel([HOST, "bash", BASH, DRIVER], **more)


def status(x):
    return x.first(DONE) and int(x.first(DONE).key)


def runs(k, what, code, out=b"", err=b"", outcome=0, code_status=None):
    """One execution, from what it prints to how it ends."""
    x = k.run(code)
    want = (out, err, outcome, code_status if code_status is not None else 0 if outcome == 0 else 1)
    got = (x.out, x.err, x.outcome, status(x))
    if callable(out):
        got, want = (out(x), *got[1:]), (True, *want[1:])
    if callable(err):
        got, want = (got[0], err(x), *got[2:]), (want[0], True, *want[2:])
    check(what, got == want, f"got  {got!r}\nwant {want!r}\n{x!r}")
    return x


def interrupted(k, what, code, delay=0.15, seconds=1.0):
    x = k.start(code)
    time.sleep(delay)
    began = time.monotonic()
    k.interrupt()
    k.finish()
    check(f"a SIGINT ends {what}", x.outcome == 2 and time.monotonic() - began < seconds, x)
    return x


@case
def test_basics():
    with bash() as k:
        m = k.ready
        check("READY says what it is", (m.value, m.key) == (1, "bash") and m.text.startswith("GNU bash 5")
              or m.text.startswith("GNU bash 4"), m)
        runs(k, "output and error output are two streams", "echo out; echo err >&2", b"out\n", b"err\n")
        x = k.run("echo", rollback=True)
        same("asked for, a rollback is not there, and why is said", (x.armed, x.why),
             (False, "bash cannot be rolled back"))
        same("not asked for, nothing is said", k.run("echo").why, "")
        same("UNDO is refused", k.undo().kind, REFUSED)
        runs(k, "a failed command's status", "(exit 7)", outcome=1, code_status=7)
        runs(k, "$? is that of the execution before", "echo $?", b"7\n")
        runs(k, "nothing at all", "")
        runs(k, "no final newline", "echo a; printf b", b"a\nb")
        runs(k, "a comment without a newline", "echo a # b", b"a\n")
        runs(k, "a function returns from the top level", "return 5; echo no", outcome=1, code_status=5)
        runs(k, "the shell's names are the usual ones", 'echo "$0 $LINENO"', b"bash 1\n")
        runs(k, "history is not expanded", 'echo "a!b" !!', b"a!b !!\n")
        runs(k, "an alias works in the next execution", "alias greet='echo hi'")
        runs(k, "which it does", "greet", b"hi\n")


@case
def test_state():
    with bash() as k:
        runs(k, "variables, functions, options, directory, descriptors are set",
             "x=5; export Y=6; a=(1 2 3); f() { echo f$x; }; shopt -s extglob; set -o pipefail; cd /tmp; umask 027;"
             " exec 3<<<here; set -- p q; trap 'echo usr' USR1")
        runs(k, "and are there in the next execution",
             'f; echo "$Y ${a[2]} $PWD $(umask) $1 $2"; cat <&3; case aa in +(a)) echo ext;; esac; false | true; echo $?;'
             ' kill -USR1 $$',
             b"f5\n6 3 /tmp 0027 p q\nhere\next\n1\nusr\n")
        runs(k, "output is not redirected for the next one", "exec >/dev/null 2>&1; echo lost")
        runs(k, "which has its streams", "echo found; echo e >&2", b"found\n", b"e\n")
        runs(k, "prompts that a program sets are not printed", "PS1='(venv) '; PS2='> '; PS4='+ '", b"")
        runs(k, "not even afterwards", "echo a", b"a\n")
        runs(k, "a command for the prompt is not heard", "PROMPT_COMMAND='echo prompt'")
        runs(k, "not even afterwards", "echo a\necho b", b"a\nb\n")
        runs(k, "a DEBUG trap does not get in the way", "trap 'echo -n debug' DEBUG; echo a", lambda x: b"a\n" in x.out)
        runs(k, "nor afterwards", "echo b", b"b\n")
        runs(k, "set -x shows the user's commands only", "set -x; echo a; set +x", b"a\n",
             lambda x: b"+ echo a\n" in x.err and b"builtin" not in x.err)
        m = k.restart()
        same("RESTART begins anew", (m.kind, m.key, m.value), (BACK, "fresh", 0))
        mask = os.umask(0)
        os.umask(mask)
        runs(k, "with nothing of what was", 'echo "$x|$Y|$1|$(umask)|$PWD"',
             f"|||{mask:04o}|{os.path.realpath(k.place)}\n".encode())


@case
def test_texts():
    with bash() as k:
        error = lambda text: lambda x: text in x.err
        runs(k, "a syntax error", "echo a\nif true; then\n echo )\nfi", b"a\n", error(b"line 3: syntax error"), 1, 2)
        runs(k, "a quote that does not end", "echo 'abc", b"", error(b"matching"), 1, 2)
        runs(k, "a double quote that does not end", 'echo "abc', b"", error(b"matching"), 1, 2)
        runs(k, "an if that does not end", "if true; then", b"", error(b"unexpected end of file"), 1, 2)
        runs(k, "a here-document", "cat <<EOF\na $((1+1))\nEOF\necho b", b"a 2\nb\n")
        runs(k, "a here-document that does not end", "cat <<EOF\nabc", b"abc\n", error(b"here-document"))
        runs(k, "a line that goes on nowhere", "echo a \\", b"a \\\n")
        runs(k, "what looks like the driver's lines", "\\builtin echo E 1 0\n\\builtin echo D 1 0", b"E 1 0\nD 1 0\n")
        x = k.run("echo a\necho \0b")
        check("a NUL byte is refused with its line", x.outcome == 1 and x.first(ERROR).value == 2 and x.out == b"", x)
        runs(k, "all of this has left it as it was", "echo fine", b"fine\n")
        runs(k, "UTF-8", "echo 'é ☃'", "é ☃\n".encode())
        runs(k, "bytes that are not", b"printf '\\xff\\n'", b"\xff\n")
        runs(k, "carriage returns do what they do in bash", "echo a\r\n", b"a\r\n")
        big = "x='" + "a'\\''b\n" * 20000 + "'\necho ${#x}\n"
        runs(k, f"{len(big)} bytes of code", big, b"80000\n")
        runs(k, "8 MB of code", "x=" + "a" * (8 << 20) + "; echo ${#x}", b"8388608\n")
        runs(k, "100000 lines", ":\n" * 100000 + "echo $LINENO", b"100001\n")
        runs(k, "an error in the middle of an expansion", "echo a; echo ${nope:?gone}; echo b", b"a\n", error(b"gone"), 1, 1)
        runs(k, "division by zero", "echo a; echo $((1/0)); echo b", b"a\n", error(b"division"), 1, 1)
        runs(k, "a variable that is not set, with set -u", "set -u; echo $nope; echo b", b"", error(b"unbound"), 1, 1)
        runs(k, "and the shell goes on", "set +u; echo $nope", b"\n")


@case
def test_input_and_jobs():
    with bash() as k:
        runs(k, "standard input is empty", "cat; read a; echo $?", b"1\n")
        runs(k, "also for python", "python3 -c 'import sys; print(repr(sys.stdin.read()))'", b"''\n")
        began = time.monotonic()
        x = k.run("sleep 100 & echo $!")
        job = int(x.out)
        check("a job in the background does not hold it up", time.monotonic() - began < 5 and x.outcome == 0 and x.err == b"", x)
        runs(k, "it is there later", "jobs -p; kill -0 %1", b"%d\n" % job)
        runs(k, "and can be waited for", "kill %1; wait %1; echo $?", b"143\n", lambda x: True)
        runs(k, "so can one that ends by itself", "(sleep 0.1; exit 3) &", b"")
        runs(k, "with its status", "wait $!; echo $?", b"3\n")
        runs(k, "a pipeline in the background", "{ sleep 0.05; echo late; } | cat & echo early", b"early\n")
        time.sleep(0.3)
        check("its output comes when it comes", k.run("true").out == b"late\n")
        x = runs(k, "a program has no descriptor of ours", "ls /proc/self/fd", b"0\n1\n2\n3\n")
        runs(k, "a job in the background neither", "ls /proc/self/fd & wait", b"0\n1\n2\n3\n")
        runs(k, "order of what is printed", "for i in 1 2 3; do echo $i; /bin/echo p$i; done", b"1\np1\n2\np2\n3\np3\n")
        runs(k, "a co-process", "coproc c { cat; }; echo hi >&${c[1]}; read -u ${c[0]} y; echo $y; kill $c_PID", b"hi\n")
        runs(k, "process substitution", "cat <(echo a) <(echo b)", b"a\nb\n")


@case
def test_set_e():
    with bash() as k:
        runs(k, "set -e with what does not fail", "set -e; echo a", b"a\n")
        runs(k, "a last command that may fail", "[ 1 = 2 ] && echo no", outcome=1)
        runs(k, "has not ended the shell", "! true", outcome=1)
        runs(k, "nor has that", "if false; then :; fi; echo $-", lambda x: b"e" in x.out)
        runs(k, "completion of nothing neither", "true")
        k.ask(COMPLETE, REPLY, value=-1, data="nosuchcommand_")
        runs(k, "as one sees", "echo here", b"here\n")
        x = k.run("echo before; false; echo after")
        check("a command that fails ends the shell", (x.out, x.outcome, status(x)) == (b"before\n", 3, 1), x)
        check("and BACK says that a fresh one is there", x.first(BACK) and x.first(BACK).key == "fresh", x)
        x = k.run("echo $-")
        check("the next execution begins with a note", x.first(NOTE) and "status 1" in x.first(NOTE).text, x)
        check("after STARTED", [m.kind for m in x.messages[:2]] == [STARTED, NOTE], x)
        check("in a shell without set -e", b"e" not in x.out, x)
        check("one note is enough", not k.run("true").first(NOTE))


@case
def test_ends():
    with bash() as k:
        ends = [("exit 3", 3, 3), ("exit", 0, 3), ("exec true", 0, 3), ("exec sh -c 'exit 9'", 9, 3), ("kill -HUP $$", 129, 3),
                ("f() { exit 4; }; f", 4, 3), ("eval 'exit 5'", 5, 3), ("trap 'echo bye' EXIT; exit 2", 2, 3)]
        for code, want, outcome in ends:
            x = k.run(f"x=1; cd /; {code}")
            check(f"{code}: the shell ends, with its status", (x.outcome, status(x)) == (outcome, want), x)
            runs(k, f"{code}: a fresh one is where it began", "echo \"$x\" $PWD",
                 lambda x: x.out == f" {os.path.realpath(k.place)}\n".encode())
        check("an EXIT trap's output is seen", k.run("trap 'echo bye' EXIT; exit 2").out == b"bye\n")
        x = k.run("echo a; kill -9 $$; echo b")
        check("killed, it is BACK fresh, with the wait status", x.outcome is None and x.first(BACK).value == 9 and x.out == b"a\n", x)
        runs(k, "and goes on", "echo on", b"on\n")
        x = k.run("kill -SEGV $$; sleep 1")
        check("likewise by a fault", x.first(BACK) and x.first(BACK).value & 0x7f == signal.SIGSEGV, x)
        x = k.run("sleep 50 & echo $!; exit 1")
        job = int(x.out)
        x = k.run("kill -0 %d && echo there; kill %d" % (job, job))
        check("what ran in the background outlives an exit, and the note says so",
              x.out == b"there\n" and "1 process" in x.first(NOTE).text, x)
        k.run("sleep 50 & disown; setsid sleep 51 &")
        k.restart()
        check("but not RESTART", wait_for(lambda: not subprocess.run(
            ["pgrep", "-s", str(k.process.pid), "-x", "sleep"], capture_output=True).stdout))
        x = k.run("exec 10>&-; exec 11>&-; exec 12>&-; echo hi")
        check("who closes what bash has put aside is answered all the same",
              x.outcome is not None or x.first(BACK), x)
        runs(k, "and the session goes on", "true; echo on", b"on\n")


@case
def test_interrupts():
    with bash() as k:
        k.run("keep=me")
        for what, code in [("a loop", "while :; do :; done"),
                           ("a loop in functions", "f() { g; }; g() { for (( ; ; )); do :; done; }; f; echo after"),
                           ("a program", "sleep 100; echo after"), ("a pipeline", "yes | cat >/dev/null; echo after"),
                           ("a loop of programs", "while sleep 0.02; do :; done"),
                           ("a command substitution", "x=$(sleep 100); echo after"), ("a subshell", "(sleep 100; echo a); echo after"),
                           ("wait", "sleep 7 & wait; echo after"), ("read", "read x < <(sleep 8); echo after"),
                           ("a program with a handler", "python3 -c 'import time\ntry: time.sleep(50)\nexcept KeyboardInterrupt: raise SystemExit(130)'"),
                           ("a here-document's reader", "cat <<EOF | sleep 60\nx\nEOF"), ("eval", "eval 'while :; do :; done'"),
                           ("what a trap on EXIT follows", "trap 'echo exit' EXIT; sleep 60")]:
            x = interrupted(k, what, code, seconds=2)
            check(f"{what}: nothing after it, its status is 130, nothing is printed", status(x) == 130 and b"after" not in x.out
                  and x.err == b"" and x.out == b"", x)
            runs(k, f"{what}: variables survive", "echo $keep $?", b"me 130\n")
        runs(k, "a job in the background survives, too", "trap - EXIT; kill -0 %1 && echo alive; kill %1; wait", b"alive\n", lambda x: True)
        x = k.start("trap 'echo trapped' INT; sleep 0.5; echo went on")
        time.sleep(0.2)
        k.interrupt()
        k.finish()
        check("a trap on INT is the user's", x.outcome == 0 and b"trapped" in x.out and b"went on" in x.out, x)
        k.run("trap - INT")
        # Any moment will do.
        lost = 0
        for i in range(150):
            x = k.start(random.choice(["for i in {1..300}; do :; done", "sleep 0.003", "true", "(true); /bin/true", "x=$(echo a)"]))
            time.sleep(random.random() * 0.004)
            k.interrupt()
            k.finish()
            y = k.run(f"echo {i} $keep")
            lost += (x.outcome not in (0, 1, 2)) + (y.out != f"{i} me\n".encode()) + (y.err != b"") + (y.outcome != 0)
        same("150 SIGINTs at random moments lose nothing", lost, 0)


@case
def test_force():
    with bash() as k:
        k.run("keep=me; sleep 300 & job=$!")
        for what, code in [("a program that ignores SIGINT", "sh -c 'trap \"\" INT; while :; do sleep 0.05; done'; sleep 100; echo after"),
                           ("one in a pipeline", "sh -c 'trap \"\" INT; while :; do sleep 0.05; done' | cat; sleep 100; echo after"),
                           ("one in a session of its own", "setsid -w sh -c 'trap \"\" INT; sleep 100'; sleep 101; echo after")]:
            x = k.start(code)
            time.sleep(0.2)
            k.interrupt()
            time.sleep(0.2)
            check(f"{what} goes on after a SIGINT", not x.first(DONE), x)
            began = time.monotonic()
            k.interrupt(signal.SIGKILL)
            k.finish()
            check(f"{what}: a SIGKILL ends it, and the shell lives", x.outcome == 2 and b"after" not in x.out and
                  time.monotonic() - began < 2, x)
            runs(k, f"{what}: with its variables and jobs", "kill -0 $job; echo $keep $?", b"me 0\n")
        x = k.start("trap '' INT; while :; do :; done")
        time.sleep(0.1)
        k.interrupt()
        time.sleep(0.1)
        k.interrupt(signal.SIGKILL)
        k.finish()
        check("a shell that itself ignores it is replaced", x.first(BACK) and x.first(BACK).key == "fresh", x)
        runs(k, "and goes on", "echo \"$keep\" on", b" on\n")
        x = k.start("x=1; sleep 100")
        time.sleep(0.1)
        k.interrupt(signal.SIGKILL)
        k.finish()
        check("a SIGKILL without a SIGINT before ends the program, too", x.outcome == 2, x)
        runs(k, "and not the shell", "echo $x", b"1\n")
        # The signals of an execution that has just ended hit nobody.
        x = k.run("true")
        old = x.pid
        x = k.start("sleep 0.3; echo whole")
        os.kill(old, signal.SIGINT)
        os.kill(old, signal.SIGKILL)
        k.finish()
        check("signals that come late do not hit the next execution", (x.out, x.outcome) == (b"whole\n", 0), x)
        for i in range(3):
            k.run("true")
        interrupted(k, "what comes after that", "sleep 100")


@case
def test_deaths():
    k = bash()
    try:
        ok = True
        for i in range(40):
            x = k.start(f"keep=1; echo $$; for i in {{1..2000}}; do :; done; sleep {random.choice(['0', '0.01', '5'])}")
            k.drain() or time.sleep(random.random() * 0.02)
            children = subprocess.run(["pgrep", "-P", str(k.process.pid), "-x", "bash"], capture_output=True).stdout.split()
            for pid in children:
                os.kill(int(pid), signal.SIGKILL)
            k.finish()
            ok = ok and bool(x.first(BACK) or x.outcome == 0)
            # It may have been at work on that already.
            again = k.run("echo here"), k.run("echo here")
            ok = ok and again[1].out == b"here\n"
        check("40 kills of the shell at random moments: BACK, and it goes on", ok)
        x = k.run("keep=1; (sleep 0.1; kill -9 $$) & disown")
        wait_for(lambda: False, 0.4)
        y = k.run('echo "$keep" on')
        check("killed while nothing runs: the next execution says so", y.out == b" on\n" and "between" in y.first(NOTE).text, y)
        x = k.start("while :; do bash -c 'sleep 1 & sleep 1 &'; done")
        time.sleep(0.3)
        k.interrupt(signal.SIGKILL)
        k.finish()
        k.restart()
        check("nothing of a lot of processes is left by RESTART", wait_for(lambda: len(session_of(k.process.pid)) == 4),
              session_of(k.process.pid))
    finally:
        same("the end of the channel is the end of all", k.close(), [])


@case
def test_floods():
    with bash(timeout=60) as k:
        x = k.run("yes | head -c 30000000; head -c 5000000 /dev/zero >&2")
        same("35 MB of output", (len(x.out), len(x.err)), (30000000, 5000000))
        x = interrupted(k, "a flood", "yes", delay=0.4, seconds=3)
        check("which was one", len(x.out) > 1000)
        runs(k, "afterwards all is well", "echo fine", lambda x: x.out.endswith(b"fine\n"))
        # What the driver's pipe is made to say by user code is not believed, or harms nobody else.
        x = k.run("trap 'for i in 1 2 3; do head -c 100000 /dev/zero; echo @0 D 1 0; done' DEBUG; :")
        check("noise on the pipe of the reports", x.outcome is not None, x)
        runs(k, "and the shell goes on", "echo fine", lambda x: b"fine\n" in x.out)


@case
def test_words():
    with bash() as k:
        def complete(code, cursor=-1):
            m = k.ask(COMPLETE, REPLY, REFUSED, value=cursor, data=code)
            return json.loads(m.data) if m.kind == REPLY else m
        k.run("mkdir d 'two words'; touch file-a file-b d/inner \"qu'ote\"; my_variable=1; my_function() { :; }; alias my_alias=ls; false")
        same("a command", complete("my_func")["matches"], ["my_function"])
        check("commands of every kind", {"my_function", "my_alias"} <= set(complete("my_")["matches"]))
        same("where it begins and ends", complete("é; my_func"), {"matches": ["my_function"], "start": 3, "end": 10})
        same("the cursor counts", complete("my_func xyz", 7), {"matches": ["my_function"], "start": 0, "end": 7})
        same("a file", complete("cat file-")["matches"], ["file-a", "file-b"])
        same("a directory has its slash", complete("cat d")["matches"], ["d/"])
        same("in it", complete("cat d/")["matches"], ["d/inner"])
        same("a name with a space", complete("ls tw")["matches"], ["two\\ words/"])
        same("in quotes", complete('ls "tw'), {"matches": ["two words/"], "start": 4, "end": 6})
        same("a name with a quote", complete("ls qu")["matches"], ["qu\\'ote"])
        same("a variable", complete("echo $my_v"), {"matches": ["$my_variable"], "start": 5, "end": 10})
        same("in braces", complete("echo ${my_v")["matches"], ["${my_variable"])
        same("after a pipe a command", complete("ls | my_f")["matches"], ["my_function"])
        same("nothing", complete("cat nosuchfile")["matches"], [])
        runs(k, "$? is as it was", "echo $?", b"1\n")

        def inspect(code, cursor):
            return k.ask(INSPECT, REPLY, value=cursor, data=code).text
        check("a variable is shown", 'my_variable="1"' in inspect("echo $my_variable", 8))
        check("a function, with its body", "my_function ()" in inspect("my_function a", 3))
        check("a builtin", "shell builtin" in inspect("cd /", 1))
        same("nothing", inspect("nosuchthing_x", 3), "")
        runs(k, "and nothing was run", "ls | wc -l", b"5\n")


@case
def test_refusals():
    for what, arguments in [("no arguments", []), ("another kernel", ["ruby", "/bin/true", "/x"])]:
        p = subprocess.run([HOST, *arguments], capture_output=True, stdin=subprocess.DEVNULL)
        check(f"{what}: refused with a reason", p.returncode == 126 and b"pale-kernel:" in p.stderr, p)
    p = subprocess.run([HOST, "bash", BASH, DRIVER], capture_output=True, stdin=subprocess.DEVNULL)
    check("without a channel: refused", p.returncode == 126 and b"channel" in p.stderr, p)
    k = Kernel([HOST, "bash", "/nonexistent/bash", DRIVER], ready=False)
    check("no such program: ends with 127", k.receive() is None and k.process.wait(5) == 127, k.current)
    k.close()


done()
