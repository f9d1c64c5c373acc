"""pale session attach, and Ctrl-C of pale session exec, at a terminal. usage: test_attach.py PALE BOX"""
from cli import *
from terminal import Terminal

import os
import signal
import stat
import termios
import time

PROMPT = ">>> "
PASTE, PASTED = "\x1b[200~", "\x1b[201~"


def attach(*args, more=None):
    t = Terminal([pale, "session", "attach", *args], env | (more or {}))
    check("a prompt comes", t.wait(PROMPT), t.seen)
    return t


@case
def lines():
    new("--name", "a")
    t = attach("a")
    check("it says where it is", "Python 3" in t.seen, t.seen)
    check("a statement prints nothing", t.line("x = 41", "41\n(.*)" + PROMPT).group(1) == "", t.seen)
    check("an expression its value", t.line("x + 1", r"\n42\n" + PROMPT), t.seen)
    t.line("def f():", r"\.\.\. ")
    t.line("    return x", r"\.\.\. ")
    check("a block goes on until an empty line", t.line("", PROMPT) and t.line("f()", r"\n41\n" + PROMPT), t.seen)
    t.line("y = (1,", r"\.\.\. ")
    check("... and a bracket until its end", t.line("2)", PROMPT) and t.line("y", r"\n\(1, 2\)\n" + PROMPT), t.seen)
    check("more than ASCII", t.line("print('ä€😀')", "\nä€😀\n" + PROMPT), t.seen)
    check("an error in colour", t.line("1/0", "ZeroDivisionError: division by zero\n" + PROMPT) and "\033[31mZeroDiv" in t.seen, t.seen)
    check("a line without its end does not swallow the prompt", t.line("print('no end', end='')", r"\nno end\n" + PROMPT), t.seen)
    t.type("an unfinished lin")
    t.wait("lin")
    t.type("\x03")
    check("Ctrl-C gives a line up", t.wait(r"\n" + PROMPT) and t.line("7 * 6", r"\n42\n" + PROMPT), t.seen)
    t.line("def g():", r"\.\.\. ")
    t.type("\x03")
    check("... and a block", t.wait(r"\n" + PROMPT) and t.line("'still'", "'still'\n" + PROMPT), t.seen)
    t.type("\x1b[A")
    check("the line before comes back", t.wait("'still'$") and t.line("", "\n'still'\n" + PROMPT), t.seen)
    t.line("", PROMPT)
    t.type("\x04")
    check("Ctrl-D leaves, and says that the session goes on", t.wait("the session goes on") and t.end() == 0, t.seen)
    same("... which it does", execute("a", "f()").stdout, "41\n")
    path = f"{tmp}/xdg/pale/history-python"
    check("lines are remembered, for their owner", stat.S_IMODE(os.stat(path).st_mode) == 0o600 and
          "x = 41\n" in open(path, encoding="utf-8").read())
    t = attach("a")
    t.type("\x1b[A")
    check("... for the next time", t.wait("'still'"), t.seen)
    t.type("\x03\x04")
    t.type("\x04")
    t.end()
    session("rm", "a")


@case
def names():
    new("--name", "n")
    execute("n", "a_long_name, b_one, b_two = 5, 6, 7")
    t = attach("n")
    t.type("a_lo\t")
    check("Tab completes a name", t.wait("ng_name") and t.line("", r"\n5\n" + PROMPT), t.seen)
    t.type("b_\t")
    check("... and lists those that are possible", t.wait("b_one +b_two"), t.seen)
    t.type("t\t")
    check("... until it is the only one", t.wait("b_two") and t.line("", r"\n7\n" + PROMPT), t.seen)
    t.line("if b_one:", r"\.\.\. ")
    t.type("\tprint(a_lo\t")
    check("in a block, Tab steps in, and then completes", t.wait("a_long_name|ng_name") and t.line(")", r"\.\.\. ") and t.line("", "5\n" + PROMPT), t.seen)
    t.type("len\x1b[Z")
    check("Shift-Tab says what is known", t.wait("container") and t.line("", "built-in") and t.wait(PROMPT), t.seen)
    check("?name, too", t.line("?len", "container[^>]*" + PROMPT), t.seen)
    check("name?, too", t.line("len?", "container[^>]*" + PROMPT), t.seen)
    execute("n", "def __dir__(self): return ['evil\\x1b]0;owned\\x07', 'evil_two']\nclass E: __dir__ = __dir__\nE.__doc__ = '\\x1b]0;owned\\x07 doc'\ne = E()")
    t.type("e.ev\t\t")
    t.wait("evil")
    t.type("\x03")
    t.wait(PROMPT)
    t.line("e?", PROMPT)
    check("what comes from the box does not reach the terminal as it is", "\x1b]0;owned" not in t.seen, t.seen)
    t.type("\x04")
    t.end()
    session("rm", "n")


@case
def paste():
    new("--name", "p")
    t = attach("p")
    check("the terminal is asked to mark what is pasted", "\x1b[?2004h" in t.seen, t.seen)
    t.type(PASTE + "def f(a):\n\n\treturn a + 1\n\nx = f(1)\nx" + PASTED)
    check("a paste of several lines waits for Enter", t.wait(r"x = f\(1\)\n\.\.\. x$"), t.seen)
    check("... and is one piece, empty lines and tabs within", t.line("", r"\n2\n" + PROMPT), t.seen)
    t.type("y = ")
    t.type(PASTE + "'one line'" + PASTED)
    check("a paste of one line is as if it were typed", t.line("; y", "'one line'\n" + PROMPT), t.seen)
    t.type(PASTE + "print('last')\r" + PASTED)
    check("one with its end, too", t.wait(r"\.\.\. $") and t.line("", r"\nlast\n" + PROMPT), t.seen)
    t.type(PASTE + "z = '\x1b]0;owned\x07'" + PASTED)
    check("... without what a terminal could obey", t.line("; z", r"'\]0;owned'\n" + PROMPT), t.seen)
    t.type("\x04")
    check("the terminal is given back as it was", t.end() == 0 and t.seen.rstrip().rfind("\x1b[?2004l") > t.seen.rfind("\x1b[?2004h"), t.seen)
    session("rm", "p")


@case
def interrupted_at_the_prompt():
    new("--name", "i", "--grace", "5s")
    t = attach("i")
    t.line("x = 5", PROMPT)
    t.line("while True: pass", "pass\n")
    time.sleep(0.5)
    t.type("\x03")
    check("Ctrl-C interrupts what runs", t.wait("KeyboardInterrupt\n" + PROMPT), t.seen)
    check("... and the variables are there", t.line("x", r"\n5\n" + PROMPT), t.seen)
    t.line("n = input('name? ')", r"\nname\? ")
    check("what it asks for is read", t.line("ann", PROMPT) and t.line("n", "'ann'\n" + PROMPT), t.seen)
    t.line("import getpass; p = getpass.getpass('secret? ')", r"\nsecret\? ")
    check("a password is not shown", wait_for(lambda: not t.mode() & termios.ECHO), t.mode())
    t.line("hunter2", PROMPT)
    check("... nor remembered", t.line("p", "'hunter2'\n" + PROMPT) and t.seen.count("hunter2") == 1
          and "hunter2" not in open(f"{tmp}/xdg/pale/history-python", encoding="utf-8").read(), t.seen)
    t.line("input('end? ')", r"\nend\? ")
    t.type("\x04")
    check("Ctrl-D is the end of its input", t.wait("EOFError.*\n" + PROMPT), t.seen)
    check("... not ours", t.line("x", r"\n5\n" + PROMPT), t.seen)
    t.type("x + ")
    t.wait(r"\+ ")
    os.kill(t.pid, signal.SIGTSTP)
    check("it can be stopped", wait_for(lambda: open(f"/proc/{t.pid}/stat").read().rsplit(")")[1].split()[0] == "T"))
    os.kill(t.pid, signal.SIGCONT)
    check("... and goes on with its line", t.line("1", r"\n6\n" + PROMPT), t.seen)
    os.kill(t.pid, signal.SIGTERM)
    check("SIGTERM ends it", t.end() == 0, t.seen)
    same("... and not the session", execute("i", "x").stdout, "5\n")
    session("rm", "i")


@case
def ended_meanwhile():
    new("--name", "g")
    t = attach("g")
    session("rm", "g")
    check("a session that has ended is told", t.line("1", "has ended|no session") and t.end() == 125, t.seen)
    says("attach to none", session("attach", "g"), 125, "g")


@case
def without_terminal():
    new("--name", "s")
    done = session("attach", "s", input="x = 4\nfor i in range(2):\n    print(i)\nx\n")
    same("without a terminal, all of it is executed", (done.returncode, done.stdout), (0, "0\n1\n4\n"))
    session("rm", "s")


@case
def control_c():
    new("--name", "b", "--grace", "10s")
    t = Terminal([pale, "session", "exec", "b", "-c", "print('begun', flush=True)\nwhile True: pass"], env)
    t.wait("begun")
    t.type("\x03")
    check("Ctrl-C interrupts an execution", t.wait("KeyboardInterrupt") and t.end() == 130, t.seen)
    session("rm", "b")
    new("--name", "c", "--grace", "300ms")
    execute("c", "x = 5")
    t = Terminal([pale, "session", "exec", "c", "-c", "import signal; signal.signal(2, signal.SIG_IGN); x = 6; print('begun', flush=True)\nwhile True: pass"], env)
    t.wait("begun")
    t.type("\x03")
    check("one that does not listen is taken back", t.wait("as they were before it") and t.end() == 130, t.seen)
    same("... and the variables are as before it", execute("c", "x").stdout, "5\n")
    execute("c", "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()")
    t = Terminal([pale, "session", "exec", "c", "-c", "import signal; signal.signal(2, signal.SIG_IGN); print('begun', flush=True)\nwhile True: pass"], env)
    t.wait("begun")
    t.type("\x03")
    check("where nothing is held, it says that it goes on", t.wait("Ctrl-C again"), t.seen)
    t.type("\x03")
    check("... and the second ends it, with all variables", t.wait("variables are gone.*threads?") and t.end() == 130, t.seen)
    same("... but not the session", execute("c", "'x' in globals()").stdout, "False\n")
    t = Terminal([pale, "session", "exec", "c", "-c", "import time\nwhile True:\n"
                  "    try:\n        print('begun', flush=True)\n        while True: time.sleep(1)\n"
                  "    except KeyboardInterrupt: print('no', flush=True)"], env)
    t.wait("begun")
    t.type("\x03")
    t.wait("no")
    check("one that catches it is taken back all the same", t.wait("as they were before it") and t.end() == 130, t.seen)
    # The third leaves it alone.
    new("--name", "d", "--grace", "1m")
    t = Terminal([pale, "session", "exec", "d", "-c", "import signal; signal.signal(2, signal.SIG_IGN); print('begun', flush=True)\nwhile True: pass"], env)
    t.wait("begun")
    for _ in range(3):
        t.type("\x03")
        time.sleep(0.3)
    check("the third leaves it alone, and says how to come back", t.wait("goes on: `pale session output d 1 --follow`") and t.end() == 130, t.seen)
    check("... which it does", show("d")["session"]["state"] == "busy")
    t = Terminal([pale, "session", "exec", "d", "-c", "1"], env)
    check("what waits says for what", t.wait("execution 2 waits until execution 1 has ended"), t.seen)
    t.type("\x03")
    check("... and Ctrl-C ends itself only", t.end() == 130 and show("d")["session"]["running"] == 1, t.seen)
    t = Terminal([pale, "session", "output", "d", "1", "--follow"], env)
    t.wait("begun")
    t.type("\x03")
    check("whoever only follows ends nothing", t.end() == 130 and show("d")["session"]["running"] == 1, t.seen)
    session("rm", "--all")


done()
