"""The kernel `ipython`: the real ipykernel behind the kernel channel. TAP.

    test_ipython.py DRIVER
"""
import json
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from kernel import *

PYTHON = "/usr/bin/python3"
COMMAND = [PYTHON, "-B", os.path.abspath(sys.argv[1])]
MESSAGE = "application/vnd.jupyter.message+json"

if subprocess.run([PYTHON, "-c", "import ipykernel, jupyter_client"], capture_output=True).returncode:
    skip("the kernel ipython", "there is no ipykernel", "jupyter")
    done()
kernel = None


def fresh(*more, **env):
    return Kernel([*COMMAND, *more], timeout=60, env=env)


@case
def begins():
    global kernel
    kernel = fresh()
    same("it says what it is", (kernel.ready.value, kernel.ready.key), (1, "ipython"))
    check("with its versions", kernel.ready.text.startswith("IPython ") and "ipykernel " in kernel.ready.text, kernel.ready.text)
    same("it prints nothing by itself", (kernel.current.out, kernel.current.err), (b"", b""))


@case
def executes():
    x = kernel.run("print('out')\nimport sys; print('err', file=sys.stderr)\n6 * 7")
    same("it executes, and has a result", (x.outcome, x.out, x.err, x.result), (0, b"out\n", b"err\n", "42"))
    same("not to be taken back, which nobody asked for", (x.armed, x.why), (False, ""))
    pid = int(kernel.value("__import__('os').getpid()"))
    same("who runs it is told, and leads its group", (x.pid, os.getpgid(pid)), (pid, pid))
    same("the state stays", [kernel.value("x = [1]"), kernel.value("x")], [None, "[1]"])
    same("counted from 1, in order", kernel.value("In[1][:5], len(In)"), "('print', 6)")
    x = kernel.run("for i in range(3): print(i)\ndisplay('a')\nprint('b')\n!echo from a $((40 + 2))th shell\nprint('c')")
    same("output comes in order", x.out, b"0\n1\n2\nb\nfrom a 42th shell\r\nc\n" if b"\r" in x.out else b"0\n1\n2\nb\nfrom a 42th shell\nc\n")
    x = kernel.run("import subprocess, os\nprint('first'); subprocess.run(['echo', 'second']); os.system('echo third'); print('fourth')")
    same("that of programs too", x.out, b"first\nsecond\nthird\nfourth\n")
    same("any text does", kernel.run("print('\\u00fc \\U0001f600 \\udc80')").out.decode(), "\u00fc \U0001f600 \\udc80\n")
    same("await works", kernel.value("import asyncio; await asyncio.sleep(0.01, 7)"), "7")
    x = kernel.run("")
    same("nothing is nothing, and not counted", (x.outcome, x.bundles(), kernel.value("len(In)")), (0, [], "11"))
    x = kernel.run("print('x' * 3000000)")
    same("much output comes whole", len(x.out), 3000001)
    same("a large result too", len(kernel.run("'y' * 200000").result), 200002)


@case
def magics():
    same("a line magic", kernel.run("%env PALE_TEST=1").outcome, 0)
    same("a cell magic", kernel.run("%%bash\necho $PALE_TEST").out, b"1\n")
    x = kernel.run("%%capture got\nprint('hidden')")
    same("output is captured", (x.out, kernel.value("got.stdout")), (b"", "'hidden\\n'"))
    x = kernel.run("len?")
    check("a question mark shows what it is", "Return the number of items" in x.bundles()[0]["text/plain"].decode(), x)
    x = kernel.run("%%writefile new.py\ny = 3")
    x = kernel.run("%load new.py")
    same("what is for the next cell comes as a message", json.loads(x.bundles()[0][MESSAGE])["content"]["source"], "set_next_input")


@case
def displays():
    code = ("import matplotlib.pyplot as plt, pandas\nplt.plot([1, 2]); plt.show()\ndisplay(pandas.DataFrame({'a': [1]}))\n"
            "from IPython.display import JSON, HTML\ndisplay(JSON({'k': 1}))\nHTML('<b>x</b>')")
    x = kernel.run(code, timeout=120)
    bundles = x.bundles()
    same("displays are bundles in their order", len(bundles), 4)
    check("a picture is its bytes", bundles[0]["image/png"].startswith(b"\x89PNG") and "text/plain" in bundles[0], x)
    check("a table", b"<table" in bundles[1]["text/html"] and b"a" in bundles[1]["text/plain"], x)
    same("JSON", json.loads(bundles[2]["application/json"]), {"k": 1})
    same("the last is the result", (x.result is not None, bundles[3]["text/html"]), (True, b"<b>x</b>"))
    x = kernel.run("h = display('one', display_id='d'); h.update('two'); display('three')")
    same("a display that is updated", x.bundles(),
         [{"text/plain": b"'one'", "application/vnd.jupyter.display-id": b"d"},
          {"text/plain": b"'two'", "application/vnd.jupyter.display-update": b"d"}, {"text/plain": b"'three'"}])
    x = kernel.run("from IPython.display import clear_output; clear_output(wait=True)")
    message = json.loads(x.bundles()[0][MESSAGE])
    same("output that is to be cleared", (message["msg_type"], message["content"]), ("clear_output", {"wait": True}))
    x = kernel.run("from ipykernel.comm import Comm\nc = Comm(target_name='t', data={'a': 1}, buffers=[b'\\0\\1'])\nc.send({'b': 2})\nc.close()")
    messages = [json.loads(b[MESSAGE]) for b in x.bundles()]
    same("comms pass through", [m["msg_type"] for m in messages], ["comm_open", "comm_msg", "comm_close"])
    same("with data and buffers", (messages[0]["content"]["data"], messages[0]["buffers"], messages[1]["content"]["data"]), ({"a": 1}, ["AAE="], {"b": 2}))


@case
def errors():
    x = kernel.run("y = 1\ndef f():\n    return y / 0\n\nf()")
    name, message, traceback = x.error
    same("an error, with the line", (x.outcome, name, message, x.first(ERROR).value), (1, "ZeroDivisionError", "division by zero", 5))
    check("its traceback is IPython's, without colours", "----> 5 f()" in traceback and "\x1b" not in traceback
          and traceback.endswith("ZeroDivisionError: division by zero\n"), traceback)
    x = kernel.run("ok = 1\nif (:\n")
    same("a syntax error, too", (x.outcome, x.error[0], x.first(ERROR).value), (1, "SyntaxError", 2))
    same("and the state is kept", kernel.value("x"), "[1]")
    x = kernel.run("import sys; sys.exit(3)")
    same("SystemExit is an error, as it is for IPython", (x.outcome, x.error[0]), (1, "SystemExit"))


@case
def interrupts():
    def interrupted(what, code, name="KeyboardInterrupt", ready="print('ready', flush=True)\n"):
        """When it has said that it is ready for it, however long that takes."""
        kernel.start(ready + code)
        check(f"{what} has begun", not ready or wait_for(lambda: kernel.drain() or kernel.current.out == b"ready\n", 60), kernel.current)
        begun = time.monotonic()
        kernel.interrupt()
        x = kernel.finish()
        took = time.monotonic() - begun
        # One that comes before the code has begun finds nothing that could have a traceback.
        said = x.error[0] if x.error else None if ready else name
        check(f"interrupted: {what}", x.outcome == 2 and said == name and took < 20, f"{took}\n{x}")

    interrupted("a loop", "while True: pass")
    interrupted("a sleep", "import time; time.sleep(60)")
    interrupted("at once", "time.sleep(60)", ready="")
    kernel.start("!sleep 60")
    check("a shell line has begun", wait_for(lambda: any(stat_of(p)[0] == "sleep" for p in below(kernel.process.pid)), 60))
    kernel.interrupt()
    check("a shell line is ended, however IPython calls that", kernel.finish().outcome in (0, 1, 2), kernel.current)
    interrupted("a program that is waited for", "import subprocess; subprocess.run(['sleep', '60'])")
    interrupted("await", "await asyncio.sleep(60)", name="CancelledError",
                ready="import asyncio; asyncio.get_running_loop().call_later(0.01, lambda: print('ready', flush=True))\n")
    for i in range(20):
        kernel.start("while True: pass")
        kernel.interrupt()
        if kernel.finish().outcome != 2:
            check("again and again", False, kernel.current)
            break
    else:
        check("again and again", True)
    kernel.interrupt()
    same("when nothing runs it is nothing", kernel.value("x"), "[1]")


@case
def asks():
    kernel.start("name = input('who? ')\nprint('hello', name)")
    m = kernel.wait(INPUT_WANTED)
    same("input is asked for", (m.value, m.text), (0, "who? "))
    kernel.send(INPUT, 0, 0, "me")
    same("and comes", kernel.finish().out, b"hello me\n")
    kernel.start("import getpass; getpass.getpass('word? ')")
    same("what is not to be shown", kernel.wait(INPUT_WANTED).value, 1)
    kernel.send(INPUT, 0, 0, "secret")
    same("comes too", kernel.finish().result, "'secret'")
    kernel.start("input()")
    kernel.wait(INPUT_WANTED)
    kernel.send(INPUT, 0, 1)
    same("the end of input is EOFError", kernel.finish().error[0], "EOFError")
    kernel.start("input()")
    kernel.wait(INPUT_WANTED)
    kernel.interrupt()
    same("waiting is interrupted", kernel.finish().outcome, 2)


@case
def helps():
    m = kernel.ask(COMPLETE, REPLY, REFUSED, value=8, data="import nu\nx")
    got = json.loads(m.data)
    check("completion", m.key == "application/json" and "numbers" in got["matches"] and got["start"] == 7, m)
    kernel.run("attribute = __import__('collections').OrderedDict()")
    m = kernel.ask(COMPLETE, REPLY, REFUSED, value=len("'\u00fc'; attribute.move"), data="'\u00fc'; attribute.move")
    same("of an attribute, by code points", json.loads(m.data), {"matches": ["move_to_end"] if b'["move' in m.data else ["attribute.move_to_end"],
                                                               "start": json.loads(m.data)["start"], "end": 19})
    m = kernel.ask(INSPECT, REPLY, REFUSED, value=3, data="len")
    check("inspection, without colours", m.key == "text/plain" and "Return the number of items" in m.text and "\x1b" not in m.text, m)
    same("of what nobody knows nothing", kernel.ask(INSPECT, REPLY, REFUSED, value=3, data="nope").data, b"")


@case
def no_way_back():
    x = kernel.armed("z = 1")
    check("rollback cannot be had, and why is said", not x.armed and "threads" in x.why and x.outcome == 0, x)
    m = kernel.undo()
    same("nor an undo", (m.kind, "threads" in m.text), (REFUSED, True))
    same("and all is as it was", kernel.value("z"), "1")


@case
def begins_anew():
    old = kernel.current.pid
    kernel.run("import subprocess\np = subprocess.Popen(['setsid', 'sh', '-c', 'trap \"\" TERM HUP; sleep 100'])")
    check("something runs on", wait_for(lambda: any(stat_of(p)[0] == "sleep" for p in below(kernel.process.pid))))
    left = [p for p in below(kernel.process.pid) if stat_of(p)[0] in ("sleep", "sh")]
    m = kernel.restart()
    same("restart: fresh", (m.kind, m.key, m.id), (BACK, "fresh", kernel.last_id))
    check("nothing of before is left", wait_for(lambda: not any(os.path.exists(f"/proc/{p}") for p in [old, *left])))
    same("nor its names", kernel.run("x").error[0], "NameError")
    took = []
    for _ in range(3):
        begun = time.monotonic()
        kernel.restart()
        took.append(time.monotonic() - begun)
    print(f"# a restart takes {min(took) * 1000:.0f} ms")
    # Or as much as this machine has for a whole new one just now.
    begun = time.monotonic()
    fresh().close()
    whole = time.monotonic() - begun
    check("it is quick", min(took) < max(1.5, whole), (took, whole))
    x = kernel.run("q = 1\nexit()")
    same("exit ends the interpreter", (x.outcome, x.first(DONE).key), (3, "0"))
    same("and there is another", (x.messages[-1].kind, x.messages[-1].key, kernel.run("q").error[0]), (BACK, "fresh", "NameError"))
    for what, code, status in (("os._exit", "import os; os._exit(7)", 7 << 8), ("a crash", "import ctypes; ctypes.string_at(0)", 11),
                               ("a signal", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 9)):
        x = kernel.run(code)
        back = x.messages[-1]
        check(f"died: {what}", back.kind == BACK and back.key == "fresh" and back.id == x.id and back.value & ~0x80 == status, x)
        same("... and works again", kernel.value("1 + 1"), "2")
    kernel.start("while True: pass")
    kernel.interrupt(signal.SIGKILL)
    x = kernel.finish()
    same("killed while it runs, by its group", (x.messages[-1].kind, x.messages[-1].key, x.messages[-1].value), (BACK, "fresh", 9))
    pid = int(kernel.value("__import__('os').getpid()"))
    os.kill(pid, signal.SIGKILL)
    m = kernel.wait(BACK)
    same("killed while it waits", (m.id, m.key, m.value), (0, "fresh", 9))
    same("... it works again", kernel.value("2"), "2")


@case
def keeps_its_own():
    x = kernel.run("import subprocess\nprint(subprocess.run(['sh', '-c', 'ls /proc/self/fd'], capture_output=True, text=True, close_fds=False).stdout.split())")
    fds = eval(x.out)
    same("what user code starts has the streams and no channel", [fd for fd in fds if int(fd) > 3], [])
    same("nor has the interpreter", kernel.value(
        "[os.readlink(f'/proc/self/fd/{fd}') for fd in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{fd}') "
        "and __import__('stat').S_ISSOCK(os.stat(f'/proc/self/fd/{fd}').st_mode) and __import__('socket').socket(fileno=os.dup(int(fd))).type == 5]"
        .replace("os.", "__import__('os').")), "[]")
    with open(os.path.join(kernel.place, "zmq.py"), "w") as f:
        f.write("raise SystemExit\n")
    kernel.restart()
    same("modules beside the code are not its own", kernel.value("1"), "1")
    same("but the user's", kernel.run("import new; new.y").result, "3")


@case
def ends():
    pids = below(kernel.process.pid)
    kernel.run("import subprocess; subprocess.Popen(['setsid', 'sleep', '100'])")
    pids = below(kernel.process.pid)
    same("when the supervisor goes all of it does", kernel.close(), [])
    check("what it started, too", wait_for(lambda: not any(os.path.exists(f"/proc/{p}") for p in pids)),
          [stat_of(p) for p in pids if os.path.exists(f"/proc/{p}")])


@case
def imports_ahead():
    with fresh("--import", "numpy,no_such_module,json") as k:
        x = k.run("import sys; 'numpy' in sys.modules")
        same("what is to be imported is", x.result, "True")
        check("what cannot be is told", "no_such_module" in x.first(NOTE).text, x)
        first = k.value("import numpy; numpy.random.random()")
        k.restart()
        check("no two fresh interpreters have the same numbers", k.value("import numpy; numpy.random.random()") != first)
    with fresh("--no-rollback") as k:
        same("it takes what kernels are told", k.value("1"), "1")


if kernel:
    kernel.close()
done()
