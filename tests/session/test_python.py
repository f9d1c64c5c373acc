"""The Python kernel in a box: what the box's filter, limits and view leave of tests/kernels/test_python.py, and the
whole way of an execution that is taken back. usage: test_python.py PALE BOX"""
from cli import *

import json
import os
import subprocess

root = os.geteuid() == 0


def started(o):
    return next(e for e in o["events"] if e["type"] == "started")


def ended(o):
    return o["outcome"], o["how"], o["state"]


@case
def ordinary():
    name = new()
    o = result(name, "import os, sys, multiprocessing\nx = 5\nprint(sys.argv, sys.path[0] == '', os.isatty(0))")
    check("an execution is armed in a box", started(o)["rollback"], o)
    same("it runs as in the interactive interpreter", printed(o), "[''] True False\n")
    same("nothing that the kernel does is an attempt to go further", o["blocked"], [])
    same("state stays", value(result(name, "x + 1")), "6")
    o = result(name, "with multiprocessing.get_context('fork').Pool(2) as p: out = p.map(abs, [-1, -2])\np.join(); out")
    same("processes", value(o), "[1, 2]")
    o = result(name, "with multiprocessing.get_context('spawn').Pool(2) as p: out = p.map(abs, [-1, -2])\np.join(); out")
    same("processes that begin anew", value(o), "[1, 2]")
    same("files in the box's own places", value(result(name, "open('f', 'w').write('abc'), os.getcwd() == os.path.expanduser('~')")), "(3, True)")
    o = result(name, "exit(3)\n")
    same("exit() ends the interpreter only", (ended(o), o["status"]), (("ended", None, "fresh"), 3))
    o = result(name, "'x' in globals(), open('f').read()")
    same("the next execution has a fresh one, and the same files", (o["outcome"], value(o)), ("ok", "(False, 'abc')"))
    session("rm", name)


@case
def taken_back():
    name = new("--grace", "200ms")
    result(name, "x = [1]")
    o = result(name, "import time\nx.append(2)\nwhile True:\n    try: time.sleep(10)\n    except KeyboardInterrupt: pass", "--timeout", "300ms")
    same("what does not end is taken back", (ended(o), value(result(name, "x"))), (("timeout", "rollback", "held"), "[1]"))
    o = result(name, "x.append(3)\nimport os\nos._exit(4)")
    same("so is what ends its process", (ended(o), o["status"], value(result(name, "x"))), (("died", None, "held"), 4, "[1]"))
    o = result(name, "x.append(4)\nimport ctypes\nctypes.string_at(0)")
    check("and what crashes, which says where", ended(o) == ("died", None, "held") and "<cell" in printed(o, "stderr"), o)
    o = result(name, "x.append(5)\nimport os, signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True:\n    try: os.fork()\n    except OSError: pass", "--timeout", "500ms")
    same("and what has filled the box with processes", ended(o), ("timeout", "rollback", "held"))
    o = result(name, "import subprocess\nx, subprocess.run(['echo', 'there is room'], capture_output=True).stdout")
    same("which are gone", value(o), "([1], b'there is room\\n')")
    result(name, "x.append(6)")
    done = session("undo", name)
    same("pale session undo", (done.returncode, value(result(name, "x"))), (0, "[1]"))
    o = result(name, "import os, signal\nx.append(7)\nos.kill(-1, signal.SIGTERM)\nos._exit(0)")
    same("a signal to all is not the kernel's end", (ended(o), value(result(name, "x"))), (("died", None, "held"), "[1]"))
    result(name, "import threading\ne = threading.Event()\nthreading.Thread(target=e.wait).start()\nx.append(7)")
    o = result(name, "x")
    same("what cannot be taken back says why", (started(o)["rollback"], started(o)["why"]), (False, "another thread is running"))
    o = result(name, "import time\nwhile True:\n    try: time.sleep(10)\n    except KeyboardInterrupt: pass", "--timeout", "200ms")
    same("and costs the state", (ended(o), value(result(name, "'x' in globals()"))), (("timeout", "restart", "fresh"), "False"))
    session("rm", name)


@case
def memory():
    if not root:
        skip("memory", "without a control group of the box's own a limit is that of each process", "root")
        return
    name = new("--memory", "256MiB")
    result(name, "x = bytearray(30 << 20)")
    o = result(name, "y = [bytearray(b'1') * (8 << 20) for _ in range(1000)]")
    check("what takes all memory is taken back, or told", o["outcome"] in ("memory", "error") and o["state"] in ("held", "kept"), o)
    same("the state is there", value(result(name, "len(x)")), str(30 << 20))
    result(name, "z = bytearray(b'1') * (150 << 20)")
    o = result(name, "len(z)")
    check("more than half of the memory is not held twice", not started(o)["rollback"] and "half of the memory" in started(o)["why"]
          and value(o) == str(150 << 20), o)
    result(name, "del z")
    check("and then it is again", started(result(name, "1"))["rollback"])
    session("rm", name)


@case
def modules():
    if subprocess.run(["/usr/bin/python3", "-c", "import numpy"], capture_output=True).returncode:
        skip("modules", "numpy is not installed", "numpy")
        return
    name = new("--import", "numpy,no_such_module", "--memory", "1GiB")
    o = result(name, "import sys\n'numpy' in sys.modules")
    check("a module that was imported ahead is there, one that is not is told", value(o) == "True"
          and "no_such_module" in json.dumps(o["events"]), o)
    o = result(name, "import numpy as np\n(np.ones((300, 300)) @ np.ones((300, 300)))[0, 0]")
    check("it computes, and can be taken back", o["outcome"] == "ok" and started(o)["rollback"], o)
    check("still", started(result(name, "a = np.random.rand(100)"))["rollback"])
    session("rm", name)
    code = "import os\n[os.environ.get(n) for n in ('OPENBLAS_NUM_THREADS', 'OMP_NUM_THREADS')]"
    name = new("--env", "OMP_NUM_THREADS=2")
    same("libraries are kept from starting threads, but for what the policy sets", value(result(name, code)), "['1', '2']")
    session("rm", name)
    name = new("--no-rollback")
    same("or all may, without rollback", value(result(name, code)), "[None, None]")
    session("rm", name)


done()
