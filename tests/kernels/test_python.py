"""The Python kernel's driver, without a box: what an execution shows, how it ends, and what a user may do to it.

usage: test_python.py DRIVER [PYTHON]; tests of numpy, pandas and matplotlib say so where those are missing.
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from kernel import (BACK, COMPLETE, DATA, DONE, EXECUTE, HEADER, INPUT, INPUT_WANTED, INSPECT, MORE, NOTE, REFUSED,
                    REPLY, RESULT, STARTED, Kernel, below, case, check, done, same, session_of, skip, wait_for)

driver = os.path.abspath(sys.argv[1])
python = sys.argv[2] if len(sys.argv) > 2 else sys.executable
version = tuple(map(int, subprocess.run([python, "-c", "import sys; print(*sys.version_info[:2])"],
                                        capture_output=True, text=True, check=True).stdout.split()))
PNG = b"\x89PNG\r\n\x1a\n"


def kernel(*arguments, **more):
    return Kernel([python, driver, *arguments], **more)


def has(module):
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0


def one_of(text, *patterns):
    return any(re.search(p, text) for p in patterns)


@case
def beginning():
    with kernel() as k:
        same("READY says which language and version", (k.ready.value, k.ready.key, k.ready.text.split()[0]), (1, "python", "Python"))
        same("the user's names are those of the interactive interpreter",
             k.value("sorted(n for n in dir() if n != '__annotations__')"),
             str(['__builtins__', '__doc__', '__loader__', '__name__', '__package__', '__spec__']))
        same("so are the arguments, the path and the name", k.value("import sys\nsys.argv, sys.path[0], __name__"), "([''], '', '__main__')")
        same("__main__ is the user's", k.value("x = 3\nimport __main__; __main__.x"), "3")
        same("descriptor 3 is free", k.value("import os\nos.open('/dev/null', 0)"), "3")
        same("a program that is started has none of ours",
             k.value("import subprocess\nsubprocess.run(['ls', '/proc/self/fd'], capture_output=True, text=True).stdout.split()"),
             str(["0", "1", "2", "3"]))
        same("stdin is empty for programs", k.value("subprocess.run(['cat'], capture_output=True).stdout"), "b''")
        check("the session's own directory is the current one", os.path.realpath(k.place) in k.value("os.getcwd()"))
        same("nothing is left when the supervisor goes", k.close(), [])


@case
def values():
    with kernel() as k:
        x = k.run("1 + 1")
        same("the value of an expression", (x.result, x.outcome), ("2", 0))
        same("state stays", k.value("a = 5\na * 2"), "10")
        same("_ is the last value", k.value("_ + 1"), "11")
        same("None is not shown", k.run("None").bundles(), [])
        same("and leaves _", k.value("_"), "11")
        same("only the last expression is shown", [b["text/plain"] for b in k.run("1\n2\n'three'").bundles()], [b"'three'"])
        same("a semicolon silences", k.run("a;").bundles(), [])
        same("also one before a comment", k.run("x = 'é;'; a; # why").bundles(), [])
        same("not one inside a string", k.value("'a;'"), "'a;'")
        same("nor one before it", k.value("b = 1; b"), "1")
        same("no code at all", k.run("").outcome, 0)
        same("only a comment", k.run("# nothing\n").outcome, 0)
        same("line ends of any kind", k.value("if 1:\r\n  y = 2\r\ny"), "2")
        same("text in any script", k.value("'☃' + 'ß'"), "'☃ß'")
        x = k.run("print('\\udcff')")
        same("a lone surrogate is printed as an escape", (x.out, x.outcome), (b"\\udcff\n", 0))
        same("from __future__ stays", k.value("from __future__ import annotations\ndef f(x: nowhere): pass\nf.__annotations__"),
             "{'x': 'nowhere'}")
        same("in the next one too", k.value("def g(x: nowhere): pass\ng.__annotations__"), "{'x': 'nowhere'}")
        x = k.run("class C:\n    def __repr__(self):\n        raise ValueError('shy')\nC()")
        same("an error in a repr is one of the code", (x.outcome, x.error[:2]), (1, ("ValueError", "shy")))
        x = k.run("import sys\nsys.displayhook = lambda v: print('shown', v)\n7")
        same("a display hook of the user's is used", (x.out, x.bundles()), (b"shown 7\n", []))
        x = k.run("sys.displayhook = sys.__displayhook__\n7")
        same("and Python's own", x.out, b"7\n")
        x = k.run("del sys.displayhook\n7")
        same("and none, as in the interactive interpreter", x.error[:2], ("RuntimeError", "lost sys.displayhook"))
        k.restart()
        same("a source of a megabyte", k.value("len('''" + "x" * (1 << 20) + "''')"), str(1 << 20))
        x = k.run("'y' * (3 << 20)")
        check("a value of megabytes is cut in the middle", x.result.startswith("'yyy") and x.result.endswith("yyy'")
              and "left out" in x.result and len(x.result) < 1100000, len(x.result))


@case
def errors():
    with kernel() as k:
        x = k.run("def f(n):\n    return 1 / n\n\nf(0)\n")
        name, message, trace = x.error
        same("name and message of an error", (name, message, x.outcome), ("ZeroDivisionError", "division by zero", 1))
        same("the line", x.first(20).value, 2)
        trace = re.sub(r"\n *[~^]+(?=\n)", "", trace)
        same("the traceback has the user's frames, with their source", trace,
             'Traceback (most recent call last):\n  File "<cell 1>", line 4, in <module>\n    f(0)\n'
             '  File "<cell 1>", line 2, in f\n    return 1 / n\nZeroDivisionError: division by zero\n')
        x = k.run("\nf(0)")
        same("the line is one of this cell", x.first(20).value, 2)
        check("source of an earlier cell", "return 1 / n" in x.error[2] and "<cell 1>" in x.error[2], x.error[2])
        x = k.run("import linecache; linecache.clearcache(); f(0)")
        check("also if linecache was cleared", "return 1 / n" in x.error[2], x.error[2])
        x = k.run("x = 1\nif x\n  pass")
        same("a syntax error", (x.error[0], x.first(20).value, x.outcome), ("SyntaxError", 2, 1))
        check("shows the place, and none of our frames", '"<cell 4>", line 2' in x.error[2] and "if x" in x.error[2]
              and "Traceback" not in x.error[2] and driver not in x.error[2], x.error[2])
        x = k.run("print('no')\nreturn 5")
        check("one that is found after parsing shows its line too, and nothing was run",
              x.error[0] == "SyntaxError" and "return 5" in x.error[2] and x.out == b"", x)
        x = k.run("  x = 1")
        same("indentation", x.error[0], "IndentationError")
        x = k.run("'a\0b'")
        check("a NUL byte in the source is an error", x.error[0] in ("ValueError", "SyntaxError"), x)
        x = k.run("try:\n    1/0\nexcept Exception as e:\n    raise KeyError('k') from e")
        check("a chain of errors", "ZeroDivisionError" in x.error[2] and "direct cause" in x.error[2] and x.error[1] == "'k'", x.error)
        x = k.run("class E(Exception):\n    def __str__(self): raise RuntimeError\nraise E")
        same("an error that cannot be printed", (x.error[0], x.outcome), ("E", 1))
        x = k.run("class E(Exception):\n    def __str__(self): return 'a\\0b'\nraise E")
        same("a NUL in the message does not end it", x.error[1], "a\\0b")
        x = k.run("def r(): r()\nr()")
        check("endless recursion", x.error[0] == "RecursionError" and len(x.error[2]) < 3000 and "repeated" in x.error[2], x.error)
        x = k.run("def r(n): return s(n)\ndef s(n): return r(n)\nr(1)")
        check("also in turns: the traceback is bounded", x.error[0] == "RecursionError" and len(x.error[2]) < 70000, len(x.error[2]))
        same("and then all is well", k.value("1"), "1")
        x = k.run("import json; json.loads('{')")
        check("frames of libraries are the user's business", "json/decoder.py" in x.error[2] and driver not in x.error[2], x.error[2])
        x = k.run("raise KeyboardInterrupt('mine')")
        same("an interrupt of the code's own making", (x.outcome, x.error[0]), (2, "KeyboardInterrupt"))
        x = k.run("raise GeneratorExit")
        same("any other BaseException", (x.outcome, x.error[0]), (1, "GeneratorExit"))
        if version >= (3, 11):
            x = k.run("raise ExceptionGroup('many', [ValueError(1), ExceptionGroup('in', [KeyError(2)])])")
            check("an exception group", x.error[0] == "ExceptionGroup" and "KeyError: 2" in x.error[2] and driver not in x.error[2], x.error)
            x = k.run("e = ValueError('v'); e.add_note('more of it'); raise e")
            check("notes of an exception", "more of it" in x.error[2], x.error)
        same("sys.last_value", k.value("1/0") and k.value("import sys; sys.last_type.__name__"), "'ZeroDivisionError'")
        same("inspect.getsource() of what a cell defines", k.value("def h():\n    return 5\nimport inspect\ninspect.getsource(h)"),
             repr("def h():\n    return 5\n"))
        x = k.run("import warnings\nwarnings.warn('careful')")
        check("a warning, with its line", b"<cell" in x.err and b"careful" in x.err and x.outcome == 0, x)
        x = k.run("import threading\nt = threading.Thread(target=lambda: 1/0); t.start(); t.join()")
        check("an error in a thread goes to stderr", b"ZeroDivisionError" in x.err and x.outcome == 0, x)


@case
def awaiting():
    with kernel() as k:
        same("top-level await", k.value("import asyncio\nawait asyncio.sleep(0.01)\n5"), "5")
        same("as the last expression", k.value("await asyncio.sleep(0, 'slept')"), "'slept'")
        same("async for, async with and comprehensions", k.value(
            "class A:\n    async def __aenter__(self): return 3\n    async def __aexit__(self, *e): pass\n"
            "async def gen():\n    yield 1\n    yield 2\n"
            "async with A() as a: pass\nout = [a]\nasync for x in gen(): out.append(x)\nout + [x async for x in gen()]"), "[3, 1, 2, 1, 2]")
        k.run("async def which(): return asyncio.get_running_loop()\nl1 = await which()")
        same("one loop for all", k.value("l1 is await which()"), "True")
        k.run("async def tick():\n    global n\n    n = 0\n    while True:\n        n += 1\n        await asyncio.sleep(0.001)\n"
              "task = asyncio.ensure_future(tick())\nawait asyncio.sleep(0)")
        same("a task goes on when a later cell waits", k.value("before = n\nawait asyncio.sleep(0.05)\nn > before + 3"), "True")
        x = k.armed("await asyncio.sleep(0.01)")
        check("a loop and its tasks do not keep an execution from being armed", x.armed, x)
        k.run("task.cancel()")
        same("asyncio.run() in a cell without await", k.value("async def main(): return 7\nasyncio.run(main())"), "7")
        same("and await after that", k.value("await asyncio.sleep(0, 8)"), "8")
        x = k.run("async def bad():\n    await asyncio.sleep(0)\n    raise LookupError('in there')\nawait bad()")
        check("an error has no frames of asyncio", x.error[0] == "LookupError" and "asyncio" not in x.error[2].replace("await asyncio", "")
              and "in bad" in x.error[2], x.error)
        k.start("try:\n    await asyncio.sleep(30)\nfinally:\n    print('cleaned', flush=True)")
        time.sleep(0.1)
        k.interrupt()
        x = k.finish()
        check("an interrupt while it waits: `finally` is run, and the traceback says where",
              x.outcome == 2 and x.out == b"cleaned\n" and ("asyncio.sleep(30)" in x.error[2] or version < (3, 9)), x)
        same("and then all is well", k.value("await asyncio.sleep(0, 9)"), "9")
        k.run("l1.close()")
        same("a loop that was closed is replaced", k.value("await asyncio.sleep(0, 10)"), "10")
        x = k.run("async def gone():\n    raise SystemExit(3)\nawait gone()")
        same("SystemExit in a coroutine", (x.outcome, x.first(DONE).key), (3, "3"))


@case
def displaying():
    with kernel() as k:
        k.run("class Rich:\n"
              "    def __repr__(self): return 'plain'\n"
              "    def _repr_html_(self): return '<b>☃</b>'\n"
              "    def _repr_png_(self): return b'\\x89PNG\\0raw', {'width': 3}\n"
              "    def _repr_json_(self): return {'a': [1, 'ü']}\n"
              "    def _repr_svg_(self): return None\n"
              "    def _repr_latex_(self): raise NotImplementedError\n"
              "    def _repr_markdown_(self): return '*m*'\n")
        x = k.run("Rich()")
        same("a bundle of types, binary data as it is", x.bundles(), [{
            "text/plain": b"plain", "text/html": "<b>☃</b>".encode(), "image/png": b"\x89PNG\0raw",
            "application/json": '{"a": [1, "ü"]}'.encode(), "text/markdown": b"*m*"}])
        check("it is the result", all(m.flags & RESULT for m in x.all(DATA)))
        x = k.run("display(Rich(), 5)\ndisplay(6)\n'r'")
        same("display() shows each by itself", [(b["text/plain"], len(b)) for b in x.bundles()],
             [(b"plain", 5), (b"5", 1), (b"6", 1), (b"'r'", 1)])
        same("and is not the result", [m.flags & RESULT for m in x.all(DATA) if m.key == "text/plain"], [0, 0, 0, RESULT])
        same("a class is not its instance", k.run("Rich").bundles()[0].keys(), {"text/plain"})
        x = k.run("display({'text/plain': 'p', 'image/png': 'iVBORw0KGgo=', 'application/vnd.x+json': {'n': 1}}, raw=True)")
        same("a bundle of one's own; base64 is decoded", x.bundles(),
             [{"text/plain": b"p", "image/png": PNG, "application/vnd.x+json": b'{"n": 1}'}])
        same("_repr_mimebundle_", k.run(
            "class M:\n    def _repr_mimebundle_(self, include=None, exclude=None):\n"
            "        return {'text/plain': 'm', 'text/html': '<i>'}, {}\n    def _repr_html_(self): return 'other'\nM()").bundles(),
             [{"text/plain": b"m", "text/html": b"<i>"}])
        x = k.run("class Bad:\n    def _repr_html_(self): return 1/0\n    def __repr__(self): return 'still'\nBad()")
        check("a representation that fails is told, and the others are shown",
              x.outcome == 0 and x.result == "still" and "ZeroDivisionError" in x.first(NOTE).text, x)
        x = k.run("class Bad:\n    def _repr_json_(self): return {1: object()}\nBad()")
        check("so is one that is no JSON", x.outcome == 0 and x.first(NOTE) and list(x.bundles()[0]) == ["text/plain"], x)
        x = k.run("from unittest.mock import MagicMock\nMagicMock()")
        same("an object that has every attribute", x.bundles() and list(x.bundles()[0]), ["text/plain"])
        x = k.run("class Big:\n    def _repr_png_(self): return bytes(range(256)) * 20000\nBig()")
        same("megabytes of binary data", x.bundles()[0]["image/png"], bytes(range(256)) * 20000)
        x = k.run("class Big:\n    def _repr_png_(self): return bytes(9 << 20)\nBig()")
        check("more than a message may have: a note", "too much" in x.first(NOTE).text and list(x.bundles()[0]) == ["text/plain"], x.all(NOTE))
        x = k.run("print('before'); display(1); print('between', end=''); display(2); print('after')")
        same("in order with what is printed", (x.out, len(x.bundles())), (b"before\nbetweenafter\n", 2))
        x = k.run("import threading\nts = [threading.Thread(target=lambda: [display('x' * 40000) for _ in range(20)]) for _ in range(4)]\n"
                  "[t.start() for t in ts]; [t.join() for t in ts];")
        same("displays of several threads are whole", [len(b["text/plain"]) for b in x.bundles()], [40002] * 80)
        x = k.run("import os\npid = os.fork()\nif pid == 0:\n    display('child'); os._exit(0)\nos.waitpid(pid, 0);")
        same("a forked process prints instead", (x.out, x.bundles()), (b"child\n", []))


@case
def pictures():
    if not has("pandas") or not has("matplotlib"):
        skip("pandas and matplotlib", "they are not installed for this Python", "pandas")
        return
    with kernel(timeout=60) as k:
        x = k.run("import pandas as pd\ndf = pd.DataFrame({'a': [1, 2]})\ndf")
        check("a DataFrame is a table", b"<table" in x.bundles()[0]["text/html"] and "a\n0  1" in x.result, x)
        x = k.run("import matplotlib.pyplot as plt\nplt.plot([1, 2]);")
        same("a figure that is open at the end is shown", [b["image/png"][:8] for b in x.bundles()], [PNG])
        same("and closed", k.value("plt.get_fignums()"), "[]")
        x = k.run("plt.plot([1, 2]); plt.show(); print('x'); plt.figure(); plt.plot([3])")
        same("plt.show() shows at once; the value of the last expression is there, too",
             [sorted(b) for b in x.bundles()], [["image/png", "text/plain"], ["text/plain"], ["image/png", "text/plain"]])
        check("without a warning", x.err == b"", x.err)
        x = k.run("fig, ax = plt.subplots()\nax.plot([1])\nfig")
        same("a figure that is the value is shown once", sum("image/png" in b for b in x.bundles()), 1)
        x = k.run("ax.plot([2])\nfig")
        same("and can be shown again", sum("image/png" in b for b in x.bundles()), 1)
        same("an empty figure is not shown", k.run("plt.figure();").bundles(), [])
        x = k.run("fig, ax = plt.subplots()\nax.plot([1])\nfig.show()\n1/0")
        check("fig.show(); a figure is shown although the code failed", x.outcome == 1 and sum("image/png" in b for b in x.bundles()) == 1, x)
        k.start("plt.plot([1])\nimport time; time.sleep(30)")
        time.sleep(0.3)
        k.interrupt()
        same("not after an interrupt", (k.finish().outcome, k.current.bundles(), k.value("plt.get_fignums()")), (2, [], "[]"))
        x = k.run("import matplotlib\nmatplotlib.use('svg')\nplt.plot([1]);")
        same("with a backend of the user's, too", [b.get("image/png", b"")[:8] for b in x.bundles()], [PNG])
        x = k.armed("df2 = df * 2")
        check("pandas and matplotlib do not keep an execution from being armed", x.armed, x.why)
    with kernel("--import", "numpy,pandas,matplotlib", timeout=60) as k:
        same("imported ahead", k.value("import sys, os\n'pandas' in sys.modules, os.environ['OPENBLAS_NUM_THREADS']"), "(True, '1')")
        x = k.armed("import numpy as np\nnp.linalg.inv(np.random.rand(300, 300)) @ np.ones((300, 300));")
        check("armed, although numpy computes", x.armed and x.outcome == 0, x)
        check("still", k.armed("1").armed, k.current.why)
        first = k.value("np.random.rand()")
        k.restart()
        check("each fresh process has numbers of its own", first != k.value("import numpy as np\nnp.random.rand()"))
        x = k.run("import matplotlib.pyplot as plt\nplt.plot([1]); plt.show();")
        same("figures are shown", [b["image/png"][:8] for b in x.bundles()], [PNG])
    with kernel("--import", "numpy", env={"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}, timeout=60) as k:
        x = k.armed("import os, numpy as np\nos.environ['OPENBLAS_NUM_THREADS'], np.ones((200, 200)).dot(np.ones((200, 200)))[0, 0]")
        same("the policy's number of threads stays, and it works", (x.result, x.outcome), ("('2', 200.0)", 0))


@case
def asking():
    with kernel() as k:
        k.start("name = input('Who? ')\nname")
        m = k.wait(INPUT_WANTED)
        same("input() asks with its prompt", (m.id, m.value, m.text), (k.current.id, 0, "Who? "))
        k.send(INPUT, k.current.id, 0, "Zoë")
        same("and returns the line", k.finish().result, "'Zoë'")
        k.start("import getpass\nfrom getpass import getpass as gp\n(getpass.getpass(), gp('P: '))")
        m = k.wait(INPUT_WANTED)
        same("getpass() asks for no echo", (m.value, m.text), (1, "Password: "))
        k.send(INPUT, k.current.id, 0, "s3")
        m = k.wait(INPUT_WANTED)
        k.send(INPUT, k.current.id, 0, "s4")
        same("under any name", (m.text, k.finish().result), ("P: ", "('s3', 's4')"))
        k.start("input()")
        k.wait(INPUT_WANTED)
        k.send(INPUT, k.current.id, 1)
        same("the end of input", k.finish().error[0], "EOFError")
        k.start("import sys\nout = [sys.stdin.readline(), sys.stdin.buffer.readline()]\nfor line in sys.stdin: out.append(line)\nout")
        for line in ("one", "two", "three", "four"):
            k.wait(INPUT_WANTED)
            k.send(INPUT, k.current.id, 0, line)
        k.wait(INPUT_WANTED)
        k.send(INPUT, k.current.id, 1)
        same("sys.stdin asks line by line", k.finish().result, str(["one\n", b"two\n", "three\n", "four\n"]))
        k.start("print('no newline', end=' ')\ninput('?')")
        k.wait(INPUT_WANTED)
        same("what was printed comes before", k.current.out, b"no newline ")
        k.interrupt()
        same("an interrupt ends the question", k.finish().outcome, 2)
        k.send(INPUT, k.current.id, 0, "too late")
        same("an answer that comes too late is dropped", k.value("'next'"), "'next'")
        k.start("try:\n    input()\nexcept KeyboardInterrupt:\n    pass\ninput('again')")
        k.wait(INPUT_WANTED)
        k.interrupt()
        same("the question after an interrupt", k.wait(INPUT_WANTED).text, "again")
        k.send(INPUT, k.current.id, 0, "x" * 100000)
        same("and a long answer", len(k.finish().result), 100002)
        x = k.run("import os\npid = os.fork()\nif pid == 0:\n    try: input()\n    except EOFError: os._exit(7)\nos.waitpid(pid, 0)[1] >> 8")
        same("a forked process has no input", x.result, "7")
        x = k.run("import threading\nr = []\ndef ask():\n    try: r.append(input())\n    except EOFError as e: r.append(str(e))\n"
                  "t = threading.Thread(target=ask); t.start(); t.join()\nr")
        check("nor a thread", "main thread" in x.result, x)
        x = k.run("import io\nsys.stdin, keep = io.StringIO('mine\\n'), sys.stdin\ntry: r = input()\nfinally: sys.stdin = keep\nr")
        same("a stdin of the user's is used", x.result, "'mine'")
        k.start("breakpoint()\nz = 1")
        k.wait(INPUT_WANTED)
        k.send(INPUT, k.current.id, 0, "p 6 * 7")
        k.wait(INPUT_WANTED)
        k.send(INPUT, k.current.id, 0, "c")
        x = k.finish()
        check("the debugger can be used", b"42" in x.out and x.outcome == 0, x)
        same("and leaves nothing", k.value("z"), "1")


@case
def completing():
    with kernel() as k:
        def complete(code, cursor=None):
            m = k.ask(COMPLETE, REPLY, REFUSED, value=len(code) if cursor is None else cursor, data=code)
            return (json.loads(m.text) if m.kind == REPLY else m.text)

        def inspect(code, cursor=None):
            m = k.ask(INSPECT, REPLY, REFUSED, value=len(code) if cursor is None else cursor, data=code)
            same(f"the type of an inspection ({code!r})", (m.kind, m.key), (REPLY, "text/plain"))
            return m.text
        k.run("import os, time\nfrobnicate = 1\nclass Thing:\n    '''A thing.'''\n    speed = 1\n    def spin(self, times: int = 2):\n"
              "        '''Turn it.'''\n    @property\n    def slow(self): time.sleep(60)\nthing = Thing()")
        same("a name", complete("x = frob"), {"matches": ["frobnicate"], "start": 4, "end": 8})
        same("after characters outside of ASCII", complete("'☃☃' + frob"), {"matches": ["frobnicate"], "start": 7, "end": 11})
        check("keywords and builtins", {"lambda", "len"} <= set(complete("l")["matches"]))
        same("in the middle of a line", complete("frob + 1", 4)["matches"], ["frobnicate"])
        same("in another line", complete("1\nfrob\n2", 6), {"matches": ["frobnicate"], "start": 2, "end": 6})
        same("attributes", complete("thing.sp"), {"matches": ["speed", "spin"], "start": 6, "end": 8})
        check("not the private ones unasked", complete("thing.")["matches"] == ["slow", "speed", "spin"], complete("thing."))
        check("but asked", "__class__" in complete("thing.__")["matches"])
        check("attributes of attributes", "join" in complete("print(os.path.jo")["matches"])
        same("nothing of what is no name", (complete("thing.spin().f")["matches"], complete("nowhere.x")["matches"], complete("1.")["matches"],
                                            complete("")["matches"]), ([], [], [], []))
        check("modules", "json" in complete("import js")["matches"] and "json" in complete("import os, js")["matches"])
        check("builtin ones, those of packages", "sys" in complete("import sy")["matches"] and "path" not in complete("import pat")["matches"]
              and "parse" in complete("import urllib.pa")["matches"])
        check("from", "collections" in complete("from coll")["matches"] and "deque" in complete("from collections import de")["matches"]
              and "abc" in complete("from collections import deque, a")["matches"], complete("from collections import deque, a"))
        with open(os.path.join(k.place, "own_module.py"), "w") as f:
            f.write("print('imported')\n")
        check("modules of the user's, which are not imported", complete("import own_")["matches"] == ["own_module"]
              and complete("from own_module import x")["matches"] == [] and k.value("'own_module' in __import__('sys').modules") == "False")
        same("a cursor beyond the end", complete("frob", 99)["matches"], ["frobnicate"])
        same("from a module that is not loaded yet", complete("from textwrap import ded")["matches"] if version >= (3, 10) else ["dedent"], ["dedent"])
        before = time.monotonic()
        same("a property that hangs is given up", complete("thing.slow.x"), "it took too long")
        check("soon", time.monotonic() - before < 4)
        same("and then all is well", k.value("thing.speed"), "1")
        text = inspect("thing.spin(")
        check("an inspection has signature and documentation", "thing.spin(times: int = 2)" in text and "Turn it." in text, text)
        check("of the function in whose call the cursor is", "Turn it." in inspect("thing.spin([1, (2)], x"))
        check("of the name the cursor is on", "A thing." in inspect("Thing.x", 3), inspect("Thing.x", 3))
        check("of a builtin", "len(obj" in inspect("len"), inspect("len"))
        check("of a value", "frobnicate = 1" in inspect("frobnicate") and "int" in inspect("frobnicate"))
        same("of nothing", (inspect("nowhere"), inspect(""), inspect("1 + ")), ("", "", ""))
        k.armed("thing = 5")
        same("in the state as it is", (complete("thing.bit_len")["matches"], k.undo().key, complete("thing.sp")["matches"]),
             (["bit_length"], "held", ["speed", "spin"]))


@case
def printing():
    with kernel() as k:
        x = k.run("import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.stdout.write('no newline')")
        same("stdout and stderr", (x.out, x.err), (b"out\nno newline", b"err\n"))
        k.start("import time\nprint('first')\nprint('part', end='')\ntime.sleep(30)")
        wait_for(lambda: k.drain() or k.current.out, 3)
        same("a line is there at once", k.current.out, b"first\n")
        k.interrupt()
        same("the rest at the end", k.finish().out, b"first\npart")
        x = k.run("import subprocess, os\nprint('a', flush=True)\nsubprocess.run(['sh', '-c', 'echo b; echo c >&2'])\nos.write(1, b'd\\n');")
        same("output of programs", (x.out, x.err), (b"a\nb\nd\n", b"c\n"))
        x = k.run("import ctypes\nctypes.CDLL(None).printf(b'from C %d\\n', 5);")
        same("of C libraries", x.out, b"from C 5\n")
        x = k.run("for i in range(200000): print(i)")
        same("a flood", x.out[-14:], b"199998\n199999\n")
        k.start("while True: print('x' * 1000)")
        time.sleep(0.05)
        k.interrupt()
        same("an endless one ends with an interrupt", k.finish().outcome, 2)
        k.draining = False
        k.start("while True: print('x' * 1000)", True)
        time.sleep(0.2)
        k.interrupt(signal.SIGKILL)
        k.wait(BACK)
        k.draining = True
        same("also if nobody reads it, with a SIGKILL", k.value("'well'"), "'well'")

        x = k.run("import io\nsys.stdout = io.StringIO()\nprint('kept')\nsys.stdout.getvalue()")
        same("a stdout of the user's", (x.out, x.result), (b"", repr("kept\n")))
        x = k.run("class W:\n    def write(self, s): sys.__stdout__.write(s.upper())\n    def flush(self): raise OSError\nsys.stdout = W()\nprint('low')")
        same("also a bad one", (x.out, x.outcome), (b"LOW\n", 0))
        same("none", (k.run("sys.stdout = None\nprint('nothing')").outcome, k.run("del sys.stdout, sys.stderr\n1/0").error[0]), (0, "ZeroDivisionError"))
        x = k.run("sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__\nprint('again')")
        same("and ours again", x.out, b"again\n")
        k.run("sys.stdout.close(); sys.stderr.close()")
        x = k.run("print('after close()'); print('e', file=sys.stderr)")
        same("streams that were closed are open in the next cell", (x.out, x.err), (b"after close()\n", b"e\n"))
        k.run("import os\nfor fd in range(4): \n    try: os.close(fd)\n    except OSError: pass")
        x = k.run("print('after os.close()'); print('e', file=sys.stderr)\nos.fstat(0).st_rdev")
        same("so are descriptors", (x.out, x.err, x.outcome), (b"after os.close()\n", b"e\n", 0))
        same("which programs inherit", k.run("subprocess.run(['sh', '-c', 'cat; echo inherited']);").out, b"inherited\n")
        k.run("os.closerange(0, 1000)")
        same("all at once", k.run("print('after closerange()')").out, b"after closerange()\n")
        x = k.run("sys.stdout = io.TextIOWrapper(sys.stdout.detach(), encoding='latin-1')\nprint('ä')")
        same("a stdout that was detached", x.out, b"\xe4\n")
        same("in the next cell", k.run("print('ö')").out, b"\xf6\n")
        k.run("os.set_blocking(1, False)")
        x = k.run("sys.stdout = sys.__stdout__\nfor i in range(100000): print('y')")
        same("a pipe that does not block is made to", (x.outcome, len(x.out)), (0, 200000))
        k.run("os.dup2(os.open('/dev/null', os.O_WRONLY), 1)")
        x = k.run("print('gone'); 5")
        same("a stdout that leads elsewhere stays there", (x.out, x.result), (b"", "5"))


@case
def interrupting():
    with kernel() as k:
        k.start("x = 1\nwhile True: pass")
        time.sleep(0.05)
        k.interrupt()
        x = k.finish()
        same("a loop", (x.outcome, x.error[0], x.first(20).value, k.value("x")), (2, "KeyboardInterrupt", 2, "1"))
        check("its traceback says where", "while True" in x.error[2] and driver not in x.error[2], x.error[2])
        k.start("import time\ntime.sleep(30)")
        time.sleep(0.05)
        k.interrupt()
        same("a sleep", k.finish().outcome, 2)
        k.start("import subprocess\nsubprocess.run(['sleep', '30'])")
        time.sleep(0.1)
        k.interrupt()
        same("a program in the foreground goes along", (k.finish().outcome, k.value("1")), (2, "1"))
        k.start("try:\n    time.sleep(30)\nexcept KeyboardInterrupt:\n    print('caught')")
        time.sleep(0.05)
        k.interrupt()
        same("the code may catch it", (k.finish().outcome, k.current.out), (0, b"caught\n"))
        same("the handler is Python's", k.value("import signal\nsignal.getsignal(signal.SIGINT) is signal.default_int_handler"), "True")
        k.run("def handler(*a): print('handled')\nsignal.signal(signal.SIGINT, handler)")
        k.start("for _ in range(20): time.sleep(0.02)\n'end'")
        time.sleep(0.05)
        k.interrupt()
        same("a handler of the user's", (k.finish().out, k.current.result), (b"handled\n", "'end'"))
        same("stays the user's", k.value("signal.getsignal(signal.SIGINT) is handler"), "True")
        k.run("signal.signal(signal.SIGINT, signal.SIG_IGN)")
        k.start("while True: pass", True)
        time.sleep(0.05)
        k.interrupt()
        time.sleep(0.05)
        k.interrupt(signal.SIGKILL)
        same("one who ignores it is killed, and the state is back", (k.wait(BACK).key, k.value("x")), ("held", "1"))
        k.run("signal.signal(signal.SIGINT, signal.default_int_handler)")
        leader = k.current.pid
        for _ in range(300):
            os.killpg(leader, signal.SIGINT)
        same("between two executions it is nobody's", k.value("'calm'"), "'calm'")
        k.armed("1")
        leader = k.current.pid
        for _ in range(300):
            os.killpg(leader, signal.SIGINT)
        same("not the holder's either", (k.armed("'calm'").result, k.undo().key), ("'calm'", "held"))
        check("the process leads a group of its own", k.run("1").pid != k.process.pid and os.getpgid(k.current.pid) == k.current.pid)


@case
def interrupting_at_any_moment():
    """SIGINTs all the time, by another process: each execution still gets exactly one answer."""
    with kernel() as k:
        k.run("import time\nn = 0")
        odd = []
        outcomes = {}
        for i in range(400):
            k.start("n += 1", i % 4 == 0)
            pid = k.current.pid
            killer = subprocess.Popen(["sh", "-c", "for i in 1 2 3; do kill -INT -- -$0 2>/dev/null; done", str(pid)]) if i % 40 == 0 else None
            if killer is None:
                for _ in range(i % 5):
                    try:
                        os.killpg(pid, signal.SIGINT)
                    except ProcessLookupError:
                        break
            x = k.finish()
            outcomes[x.outcome] = outcomes.get(x.outcome, 0) + 1
            if x.outcome not in (0, 2) or [m.kind for m in x.messages].count(DONE) != 1 or b"pale:" in x.err:
                odd.append(x)
            if killer:
                killer.wait()
        same("each ends once, well or interrupted", odd[:2], [])
        check("some were interrupted, some not", len(outcomes) == 2, outcomes)
        time.sleep(0.05)
        same("and then all is well", k.value("'end'"), "'end'")


@case
def ending():
    with kernel() as k:
        k.run("x = 1\nimport atexit\natexit.register(print, 'goodbye')")
        x = k.run("exit()")
        back = x.first(BACK)
        same("exit() ends the interpreter, and a fresh one takes its place", (x.outcome, x.first(DONE).key, back.key, back.id, back.value),
             (3, "0", "fresh", x.id, 0))
        same("its last words are there", x.out, b"goodbye\n")
        same("the next one is fresh", k.run("x").error[0], "NameError")
        same("a status", k.run("import sys\nsys.exit(300)").first(DONE).key, "44")
        x = k.run("raise SystemExit('why')")
        same("a message", (x.first(DONE).key, x.err), ("1", b"why\n"))
        x = k.run("x = 1\nquit()", True)
        same("also when armed: fresh", x.first(BACK).key, "fresh")
        k.run("import atexit, time\natexit.register(time.sleep, 30)")
        k.start("exit(5)")
        time.sleep(0.1)
        k.interrupt()
        x = k.finish()
        same("functions that hang at exit can be interrupted", (x.outcome, x.first(DONE).key), (3, "5"))
        k.run("x = 1")
        m = k.restart()
        same("RESTART", (m.id, m.value, m.key, k.run("x").error[0]), (k.last_id - 1, 0, "fresh", "NameError"))
        x = k.run("x = 2\nimport os\nos._exit(7)")
        same("os._exit() without a holder: fresh", (x.first(DONE), x.first(BACK).key, x.first(BACK).value >> 8, x.first(BACK).id), (None, "fresh", 7, x.id))
        x = k.run("import ctypes\nctypes.string_at(0)")
        back = x.first(BACK)
        same("a crash without a holder: fresh", (back.key, back.value & 0x7f), ("fresh", signal.SIGSEGV))
        check("says where it was", b"Segmentation fault" in x.err and b"<cell" in x.err, x.err)
        x = k.run("import os, sys\nos.execv(sys.executable, [sys.executable, '-c', 'print(\"another\")'])")
        same("a process that becomes another program", (x.out, x.first(BACK).key), (b"another\n", "fresh"))
        k.run("import subprocess\np = subprocess.Popen(['sleep', '100'], start_new_session=True)\nprint(p.pid)")
        pid = int(k.current.out)
        k.restart()
        check("what the old one has started is gone with it", not os.path.exists(f"/proc/{pid}"))
        same("nothing is left when the supervisor goes", k.close(), [])


@case
def first_execution():
    """The base holds the state before it, and no other process does."""
    def processes():
        return len(below(k.process.pid))

    with kernel("--import", "json") as k:
        check("an idle kernel is two processes", wait_for(lambda: processes() == 2), below(k.process.pid))
        x = k.armed("x = 1\nimport os\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: import time; time.sleep(60)\n    os._exit(0)\n"
                    "os.wait()\nopen('f', 'w').write('abc')")
        check("it is armed", x.armed and x.outcome == 0, x)
        same("UNDO brings the beginning back", (k.undo().key, k.value("'x' in globals()", True)), ("held", "False"))
        check("and ends what it started", wait_for(lambda: processes() <= 3), below(k.process.pid))
    with kernel() as k:
        k.start("x = 1\nwhile True: pass", True)
        time.sleep(0.05)
        k.interrupt(signal.SIGKILL)
        back = k.wait(BACK)
        same("a SIGKILL, too", (back.key, back.id, back.value, k.value("'x' in globals()", True)), ("held", 1, 9, "False"))
        m = k.undo()
        same("what came after is undone", (m.kind, m.key), (BACK, "held"))
        m = k.undo()
        check("once", m.kind == REFUSED and "taken back" in m.text, m)
    with kernel() as k:
        k.armed("x = 1")
        k.armed("x += 1")
        same("the second has a holder of its own", (k.undo().key, k.value("x", True)), ("held", "1"))
    with kernel() as k:
        k.run("x = 1")
        m = k.undo()
        check("a first one without is none that can be undone", m.kind == REFUSED and "not wanted" in m.text, m)
        k.start("x = 2\nwhile True: pass")
        k.interrupt(signal.SIGKILL)
        same("nor held", k.wait(BACK).key, "fresh")
    with kernel() as k:
        k.armed("x = 1")
        same("RESTART is no rollback", k.restart().key, "fresh")


@case
def warm_up():
    """Id 0: an execution that is nobody's leaves nothing."""
    with kernel("--import", "random") as k:
        k.send(EXECUTE, 0, 1, "print('warm')")
        k.wait(DONE)
        same("it is run", k.current.out, b"warm\n")
        same("no value, no error, no line, no name is left", k.value(
            "import builtins, linecache, sys\nhasattr(builtins, '_'), hasattr(sys, 'last_type'), hasattr(sys, 'last_value'), "
            "[n for n in linecache.cache if 'cell 0' in n], sorted(n for n in dir() if n[0] != '_' and n not in ('builtins', 'linecache', 'sys'))", True),
            "(False, False, False, [], [])")
        same("it cannot be undone, the first one can", (k.armed("x = 1").armed, k.undo().key, k.undo().kind), (True, "held", REFUSED))
        same("nothing is left when the supervisor goes", k.close(), [])
    with kernel() as k:
        x = k.run("1/0")
        check("a traceback leaves nothing of the driver's source in memory", x.outcome == 1 and
              k.value("import linecache\n[n for n in linecache.cache if not n.startswith('<cell')]") == "[]", x)


@case
def rolling_back():
    with kernel() as k:
        x = k.armed("a = [1]\nimport os, sys, random")
        check("armed", x.armed and x.why == "", x)
        check("STARTED names the process", k.armed("os.getpid()").result == str(k.current.pid))
        check("which leads its group", k.armed("os.getpgid(0) == os.getpid()").result == "True")
        k.start("a.append(2)\nwhile True: pass", True)
        time.sleep(0.05)
        k.interrupt(signal.SIGKILL)
        back = k.wait(BACK)
        same("a SIGKILL", (back.key, back.id, back.value), ("held", k.current.id, 9))
        same("brings the state back", k.value("a", True), "[1]")
        x = k.armed("a.append(3)\nos._exit(3)")
        same("os._exit()", (x.first(BACK).key, x.first(BACK).value >> 8, k.value("a", True)), ("held", 3, "[1]"))
        x = k.armed("a.append(4)\nimport ctypes\nctypes.string_at(0)")
        same("a crash", (x.first(BACK).key, x.first(BACK).value & 0x7f, k.value("a", True)), ("held", signal.SIGSEGV, "[1]"))
        x = k.armed("a.append(5)\nsys.setrecursionlimit(1 << 30)\ndef f(): return [f()].sort(key=f)\nimport resource\n"
                    "resource.setrlimit(resource.RLIMIT_STACK, (1 << 20,) * 2)\nos.abort()")
        same("an abort", (x.first(BACK).key, k.value("a", True), k.value("sys.getrecursionlimit() < 10000", True)), ("held", "[1]", "True"))
        same("the next executions are armed", [k.armed("a.append(6)").armed, k.armed("a").result], [True, "[1, 6]"])
        k.armed("a.append(7)")
        same("UNDO", (k.undo().key, k.value("a", True)), ("held", "[1, 6]"))
        k.armed("a.append(8)")
        k.undo()
        m = k.undo()
        check("not twice", m.kind == REFUSED and "taken back" in m.text, m)
        k.armed("a.append(9)")
        k.ask(COMPLETE, REPLY, value=2, data="a.")
        m = k.undo()
        same("an UNDO after a completion; its id", (m.key, m.id, m.value, k.value("a", True)), ("held", k.last_id - 1, 0, "[1, 6]"))
        k.run("b = 1")
        m = k.undo()
        check("what ran without cannot be undone, and says so", m.kind == REFUSED and "not wanted" in m.text, m)
        k.armed("random.seed(5); r = [random.random() for _ in range(3)]; random.seed(5)")
        same("random numbers go on as in one process", k.armed("[random.random() for _ in range(3)] == r").result, "True")
        k.armed("os.chdir('/'); os.environ['V'] = '1'; os.umask(0o77)")
        same("directory and environment stay", k.value("(os.getcwd(), os.environ['V'], os.umask(0o22))", True), "('/', '1', 63)")
        k.start("os.chdir('/usr'); os.environ['V'] = '2'; os._exit(0)", True)
        k.wait(BACK)
        same("and are put back", k.value("(os.getcwd(), os.environ['V'])", True), "('/', '1')")
        k.armed("a.append(10)")
        wait_for(lambda: len(below(k.process.pid)) == 4 and below(k.process.pid)[-2] == k.current.pid)
        os.kill(below(k.process.pid)[-1], signal.SIGKILL)  # idle, dead for whatever reason
        back = k.wait(BACK)
        same("who dies between two executions is replaced, and nothing is lost", (back.key, back.id, k.value("a")), ("kept", 0, "[1, 6, 10]"))
        k.armed("a.append(11)")
        wait_for(lambda: len(below(k.process.pid)) == 4 and below(k.process.pid)[-2] == k.current.pid)
        os.kill(below(k.process.pid)[-1], signal.SIGKILL)
        k.wait(BACK)
        same("nor is the way back", (k.undo().key, k.value("a", True)), ("held", "[1, 6, 10]"))
        k.armed("a.append(12)")
        k.interrupt(signal.SIGKILL)
        back = k.wait(BACK)
        same("a SIGKILL that comes too late takes the execution back", (back.key, k.value("a", True)), ("held", "[1, 6, 10]"))
        same("no process is left over", len(session_of(k.process.pid)) <= 4, True)
        same("nothing is left when the supervisor goes", k.close(), [])


@case
def rolling_back_what_was_started():
    with kernel() as k:
        k.run("import os, subprocess, time")
        k.start("pids = []\n"
                "for i in range(3):\n"
                "    r, w = os.pipe()\n"
                "    if os.fork() == 0:\n"
                "        os.setsid()\n"
                "        pid = os.fork()\n"
                "        if pid == 0:\n"
                "            os.close(w)\n"
                "            time.sleep(100)\n"
                "        os.write(w, b'%d' % pid)\n"
                "        os._exit(0)\n"
                "    pids.append(int(os.read(r, 100)))\n"
                "    os.wait()\n"
                "subprocess.Popen(['sleep', '100'])\n"
                "p = subprocess.Popen(['sh', '-c', 'sleep 100 & sleep 100'], start_new_session=True)\n"
                "os.kill(p.pid, 19)\n"
                "print(*pids, p.pid)\nwhile True: pass", True)
        wait_for(lambda: k.drain() or k.current.out)
        pids = k.current.out.split()
        check("processes were started", len(pids) == 4 and all(os.path.exists(f"/proc/{int(p)}") for p in pids), pids)
        k.interrupt(signal.SIGKILL)
        same("the state is back", k.wait(BACK).key, "held")
        same("and whatever was started is gone, however detached", [p for p in pids if os.path.exists(f"/proc/{int(p)}")], [])
        x = k.run("if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        os.execlp('sleep', 'sleep', '77')\n    os._exit(0)\nos.wait();")

        def sleepers():
            return [p for p in below(k.process.pid) if open(f"/proc/{p}/cmdline").read() == "sleep\x0077\0"]
        wait_for(sleepers)
        x = k.armed("1")
        check("a daemon of an earlier execution is no obstacle", x.armed, x.why)
        k.start("while True: pass", True)
        k.interrupt(signal.SIGKILL)
        k.wait(BACK)
        check("and goes on after a rollback", sleepers())
        k.restart()
        same("but not after a restart", sleepers(), [])


@case
def not_rolling_back():
    """What a fork cannot hold is seen, said, and no obstacle when it is gone."""
    with kernel() as k:
        k.run("import os, socket, subprocess, threading, time, signal, mmap\nkeep = 'kept'")

        def not_armed(what, make, drop, pattern):
            k.run(make)
            x = k.armed("keep")
            check(f"{what}: not armed", not x.armed and re.search(pattern, x.why) and x.result == "'kept'", x)
            k.run(drop)
            x = k.armed("1")
            check(f"{what}: armed when it is gone", x.armed, x)
        not_armed("a thread", "e = threading.Event(); t = threading.Thread(target=e.wait); t.start()", "e.set(); t.join()", "^another thread is running$")
        not_armed("two threads", "e = threading.Event(); t = [threading.Thread(target=e.wait) for _ in '12']; [x.start() for x in t]",
                  "e.set(); [x.join() for x in t]", "^2 other threads are running$")
        not_armed("a process", "p = subprocess.Popen(['sleep', '100'])", "p.kill(); p.wait()", "^there is a child process$")
        not_armed("a socket", "s = socket.socket()", "s.close()", "^a socket is open")
        not_armed("a pipe", "r, w = os.pipe()", "os.close(r); os.close(w)", "^a pipe is open")
        not_armed("a file that is written", "f = open('out.txt', 'w')", "f.close()", r"^a file is open for writing: out.txt \(descriptor \d+\)$")
        not_armed("one that is read and written", "f = open('out.txt', 'r+')", "f.close()", "for writing: out.txt")
        not_armed("an epoll", "import select; p = select.epoll()", "p.close()", r"eventpoll")
        not_armed("a timer", "signal.alarm(100)", "signal.alarm(0)", "timer")
        not_armed("much shared memory", "m = mmap.mmap(-1, 4 << 20)", "m.close()", "^4 MiB of memory are shared")
        not_armed("a database", "import sqlite3; d = sqlite3.connect('x.db'); d.execute('create table if not exists t (a)')", "d.close()", "x.db")
        for what, make in (("a file that is read", "f = open('/etc/passwd')"), ("a directory", "fd = os.open('/', os.O_RDONLY)"),
                           ("/dev/null", "n = open('/dev/null', 'r+b', 0)"), ("/dev/urandom", "u = open('/dev/urandom', 'rb')"),
                           ("a path descriptor", "o = os.open('/etc', os.O_PATH)"), ("a copy of stdout", "c = os.dup(1)"),
                           ("a database in memory", "d = sqlite3.connect(':memory:')"),
                           ("a process that has ended", "subprocess.run(['true']); subprocess.Popen(['true']); time.sleep(0.05)"),
                           ("a thread that has ended", "t = threading.Thread(target=int); t.start(); t.join()"),
                           ("a lock of multiprocessing", "import multiprocessing; lock = multiprocessing.get_context('fork').Lock()")):
            k.run(make)
            x = k.armed("1")
            check(f"{what}: armed", x.armed, x)
        k.run("f.seek(0); line = f.readline(); raw = os.open('/etc/passwd', 0); os.read(raw, 5)")
        k.start("f.seek(0, 2); os.read(raw, 50); lock.acquire(); os._exit(0)", True)
        same("back", k.wait(BACK).key, "held")
        same("offsets of files are put back", k.value("f.seek(0) == 0 and f.readline() == line and os.lseek(raw, 0, 1)", True), "5")
        same("so are locks", k.value("lock.acquire(timeout=1) and (lock.release() is None)", True), "True")
        k.run("e = threading.Event(); t = threading.Thread(target=e.wait); t.start()")
        x = k.armed("keep = 'changed'")
        m = k.undo()
        check("UNDO of what was not armed is refused, with the reason", m.kind == REFUSED and "another thread is running" in m.text, m)
        k.start("while True: pass", True)
        k.interrupt(signal.SIGKILL)
        same("and its death means a fresh one", (k.wait(BACK).key, k.run("keep").error[0]), ("fresh", "NameError"))
    with kernel() as k:
        k.run("import os, signal\nx = 1")
        k.start("os.kill(os.getppid(), signal.SIGKILL)\nimport time; time.sleep(0.1); os._exit(1)", True)
        same("who kills the holder gets a fresh one", (k.wait(BACK).key, k.run("x").error[0]), ("fresh", "NameError"))
        k.run("import os, signal\nx = 1")
        x = k.armed("os.kill(os.getppid(), signal.SIGKILL); x")
        same("who kills it and lives goes on", (x.outcome, k.armed("x").result), (0, "1"))
        x = k.armed("signal.signal(signal.SIGCHLD, signal.SIG_IGN); x = 2")
        x = k.armed("x = 3; os._exit(4)")
        same("children that nobody wants to hear of", (x.first(BACK).key, x.first(BACK).value >> 8, k.value("x", True)), ("held", 4, "2"))
        k.run("seen = []\nsignal.signal(signal.SIGCHLD, lambda *a: seen.append(os.waitpid(-1, os.WNOHANG)))")
        x = k.armed("os._exit(5)")
        same("a handler for them", (x.first(BACK).key, x.first(BACK).value >> 8, k.value("seen", True)), ("held", 5, "[]"))
        k.run("signal.signal(signal.SIGALRM, lambda *a: 1/0); signal.setitimer(signal.ITIMER_REAL, 0.05)")
        time.sleep(0.2)
        x = k.run("x")
        same("a handler that raises between two executions", x.result, "2")
        k.run("x = 2")
        k.start("import time\ntime.sleep(30)", True)
        for pid in below(k.process.pid)[:-1]:
            os.kill(pid, signal.SIGTERM)
            os.kill(pid, signal.SIGINT)
        k.interrupt(signal.SIGKILL)
        same("signals to the processes that hold nothing but state do nothing", (k.wait(BACK).key, k.value("x", True)), ("held", "2"))
        k.run("os.kill(os.getpid(), signal.SIGTERM)")
        same("and SIGTERM ends it as it would any program", (k.current.first(BACK).key, k.current.first(BACK).value), ("fresh", signal.SIGTERM))
    with kernel("--no-rollback", env={"OMP_NUM_THREADS": "4"}) as k:
        k.armed("1")
        x = k.run("1")
        time.sleep(0.05)
        same("--no-rollback: no holder while idle", len(below(k.process.pid)), 2)
        same("and the number of threads is nobody's business", k.value("import os; os.environ.get('OPENBLAS_NUM_THREADS')"), None)


@case
def forking():
    with kernel() as k:
        x = k.run("import os\nprint('before', flush=True)\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nprint('both', flush=True)\n'shown'")
        same("a fork whose both sides come back: one of them is the session", (x.out, [b["text/plain"] for b in x.bundles()], x.outcome),
             (b"before\nboth\n'shown'\nboth\n", [b"'shown'"], 0))
        x = k.run("pid = os.fork()\nif not pid: 1/0\nos.waitpid(pid, 0)[1] >> 8")
        same("a child that fails says so on stderr", (x.result, b"ZeroDivisionError" in x.err, x.outcome), ("1", True, 0))
        x = k.run("pid = os.fork()\nif not pid: raise SystemExit(9)\nos.waitpid(pid, 0)[1] >> 8")
        same("one that exits", x.result, "9")
        same("and then all is well", k.armed("os.fork() or os._exit(0); os.wait(); 'well'").result, "'well'")
        code = ("import multiprocessing as mp\ndef square(n): return n * n\nctx = mp.get_context('{0}')\n"
                "with ctx.Pool(2) as pool: out = pool.map({1}, [1, 2, 3])\npool.join(); out")
        same("multiprocessing with fork", k.value(code.format("fork", "square")), "[1, 4, 9]")
        same("and with spawn, for what can be imported", k.value(code.format("spawn", "abs")), "[1, 2, 3]")
        same("twice", k.value(code.format("spawn", "abs")), "[1, 2, 3]")
        x = k.run("def work(q): q.put(os.getpid())\nq = mp.get_context('fork').Queue()\np = mp.get_context('fork').Process(target=work, args=(q,))\n"
                  "p.start(); r = q.get(); p.join(); (r != os.getpid(), p.exitcode)")
        same("a process and a queue", x.result, "(True, 0)")
        same("concurrent.futures", k.value("import concurrent.futures as cf\nwith cf.ProcessPoolExecutor(2, mp_context=ctx) as e: out = list(e.map(abs, [-1, -2]))\nout"),
             "[1, 2]")
        same("threads", k.value("with cf.ThreadPoolExecutor(2) as e: out = list(e.map(square, [3]))\nout"), "[9]")
    with kernel() as k:
        k.armed("import multiprocessing as mp\nfork = mp.get_context('fork')\np = fork.Process(target=int)")
        x = k.armed("p.start(); p.join(); p.exitcode")
        same("a process that was made in one cell and is started in another", (x.armed, x.result), (True, "0"))


@case
def damage():
    with kernel() as k:
        same("overwritten builtins", (k.run("len = print = open = str = None").outcome, k.value("1")), (0, "1"))
        k.run("import builtins\nsaved = dict(vars(builtins))\nfor n in ('len', 'str', 'isinstance', 'getattr', 'open', 'print', 'repr', 'ValueError'): delattr(builtins, n)")
        x = k.run("def f():\n    1/0\nf()")
        check("deleted ones: the traceback is there all the same", x.error[0] == "ZeroDivisionError" and "in f" in x.error[2], x)
        same("and values", k.value("5"), "5")
        same("and they are still deleted", (k.run("del len").outcome, k.run("len").error[0]), (0, "NameError"))
        k.run("vars(builtins).clear()")
        x = k.run("1/0")
        same("all of them", (x.outcome, x.error[0]), (1, "ZeroDivisionError"))
        same("and a value", k.value("5"), "5")
        x = k.armed("6")
        same("armed", (x.armed, x.result), (True, "6"))
        k.restart()
        k.run("import os, sys, io, signal, gc, _signal, posix, atexit, traceback, linecache, re\n"
              "for m in (os, io, signal, gc, _signal, posix, atexit, traceback, linecache, re, sys.modules['mmap'], sys.modules['stat']):\n"
              "    for n in list(vars(m)):\n"
              "        if not n.startswith('__'): delattr(m, n)")
        x = k.armed("7")
        same("modules without their functions", (x.result, x.outcome), ("7", 0))
        same("an error is still told", k.run("1/0").error[0], "ZeroDivisionError")
        k.start("while 1: pass", True)
        time.sleep(0.05)
        k.interrupt()
        same("interrupts", k.finish().outcome, 2)
        k.start("while 1: pass", True)
        k.interrupt(signal.SIGKILL)
        same("and rollback", k.wait(BACK).key, "held")
        k.restart()
        k.run("import sys\nsys.modules.clear()")
        same("no modules", (k.value("8"), k.run("1/0").error[0]), ("8", "ZeroDivisionError"))
        k.restart()
        k.run("import sys\nsys.path[:] = []; sys.meta_path[:] = []; sys.path_hooks[:] = []")
        x = k.run("class J:\n    def _repr_json_(self): return {}\nJ()")
        same("no imports", (x.outcome, k.run("1/0").error[0], k.value("9")), (0, "ZeroDivisionError", "9"))
        k.restart()
        for name in ("json", "traceback", "inspect", "ast", "selectors", "linecache", "re", "random", "reprlib", "colorsys"):
            with open(os.path.join(k.place, name + ".py"), "w") as f:
                f.write("raise RuntimeError('the wrong one')\n")
        k.restart()
        x = k.run("class J:\n    def _repr_json_(self): return {'a': 1}\nJ()")
        same("files with the names of modules", (x.bundles()[0].get("application/json"), k.run("1/0").error[0]), (b'{"a": 1}', "ZeroDivisionError"))
        m = k.ask(INSPECT, REPLY, REFUSED, value=3, data="len")
        check("for inspection", "len(" in m.text, m)
        same("the user's are the user's", k.run("import colorsys").error[:2], ("RuntimeError", "the wrong one"))
        for name in os.listdir(k.place):
            if name.endswith(".py"):
                os.unlink(os.path.join(k.place, name))
        with open(os.path.join(k.place, "json.py"), "w") as f:
            f.write("mine = 1\n")
        k.restart()
        x = k.run("import json\nclass J:\n    def _repr_json_(self): return {'a': 1}\ndisplay(J()); json.mine, __import__('sys').modules['json'] is json")
        same("a module of the user's stays in place", (x.bundles()[0].get("application/json"), x.result), (b'{"a": 1}', "(1, True)"))
        os.unlink(os.path.join(k.place, "json.py"))
        k.restart()
        k.run("import sys\nsys.setrecursionlimit(60)")
        same("a low recursion limit", (k.value("1"), k.run("1/0").error[0], k.value("sys.getrecursionlimit()")), ("1", "ZeroDivisionError", "60"))
        k.run("sys.setrecursionlimit(1000)\nsys.settrace(lambda *a: 1/0)")
        same("a trace function", k.value("2"), "2")
        k.run("sys.setprofile(lambda *a: None); sys.setprofile(None)\nsys.excepthook = lambda *a: print('hook')")
        same("an excepthook", k.run("1/0").error[0], "ZeroDivisionError")
        k.run("del __builtins__, __name__, __doc__")
        same("deleted names", k.value("len([1])"), "1")
        same("builtins of the user's are the real ones", k.value("import builtins\n__builtins__ is builtins or __builtins__ is vars(builtins)"), "True")
        k.run("import types\nsys.modules['__main__'] = types.ModuleType('__main__')")
        same("another __main__", k.value("3"), "3")
        k.run("globals().clear()")
        same("no names at all", k.value("4"), "4")
        k.run("import gc\nfor o in gc.get_objects():\n    if type(o) is dict and 'same_fork' in o: found = o\n")
        same("a look at everything there is", k.value("5"), "5")
        k.run("import resource, sys\nlimit = resource.getrlimit(resource.RLIMIT_AS)\nresource.setrlimit(resource.RLIMIT_AS, (300 << 20, limit[1]))")
        x = k.run("big = []\nwhile True: big.append(bytearray(4 << 20))")
        same("no memory", (x.outcome, x.error[0]), (1, "MemoryError"))
        same("and then all is well", k.value("big = None\n6"), "6")
        k.run("resource.setrlimit(resource.RLIMIT_AS, limit)")
        x = k.armed("import os\nos.closerange(0, 5000)\nprint('x')")
        same("who closes even our descriptors is rolled back", x.first(BACK) and x.first(BACK).key, "held")
        same("to what there was", k.value("big is None"), "True")
        k.run("import os\nos.closerange(0, 5000)")
        same("or is fresh", (k.current.first(BACK).key, k.value("7")), ("fresh", "7"))
        same("nothing is left when the supervisor goes", k.close(), [])


@case
def channel():
    with kernel() as k:
        k.last_id += 1
        k.send(EXECUTE, k.last_id, 0, "x = 1")
        k.wait(DONE)
        pid = next(m.value for m in k.current.messages if m.kind == STARTED)
        # It dies in the middle of a message.
        k.last_id += 1
        k.socket.sendall(HEADER.pack(EXECUTE, MORE, 0, k.last_id, 0, 9, 0) + b"y = 1\n###")
        time.sleep(0.05)
        os.kill(pid, signal.SIGKILL)
        same("a death within a message", k.wait(BACK).key, "fresh")
        k.socket.sendall(HEADER.pack(EXECUTE, 0, 0, k.last_id, 0, 14, 0) + b"print('no no')")
        same("its rest is not run", (k.value("'next'"), k.current.out), ("'next'", b""))
        ids = [k.run("1", n % 3 == 0).first(DONE).id for n in range(150)]
        same("150 executions, each with its id", ids, list(range(k.last_id - 149, k.last_id + 1)))
        k.armed("1")
        time.sleep(0.05)
        check("and no process too many", len(session_of(k.process.pid)) <= 4, session_of(k.process.pid))
        same("nor a descriptor", len(os.listdir(f"/proc/{k.process.pid}/fd")), 6)
        k.send(RESULT + 90, 5)  # no kind of message
        same("a message of no kind is passed over", k.value("2"), "2")
        k.run("import subprocess\nsubprocess.Popen(['sleep', '100'])")
        same("the supervisor goes, and so does everything", k.close(), [])
    p = subprocess.run([python, driver], stdin=subprocess.DEVNULL, capture_output=True)
    check("without a channel it says so", p.returncode != 0 and b"no kernel channel" in p.stderr, p)


@case
def importing_ahead():
    with kernel("--import", "json,no_such_module", env={"PYTHONPATH": "."}) as k:
        x = k.run("import sys\n'json' in sys.modules")
        check("what cannot be imported is told", x.result == "True" and "no_such_module" in x.first(NOTE).text, x)
        same("once", k.run("1").first(NOTE), None)
    with tempfile.TemporaryDirectory(prefix="pale-kernel.") as place:
        with open(os.path.join(place, "threaded.py"), "w") as f:
            f.write("import threading, time\nbeats = []\ndef beat():\n    while True:\n        beats.append(1)\n        time.sleep(0.01)\n"
                    "threading.Thread(target=beat, daemon=True).start()\n")
        with kernel("--import", "json,threaded,decimal", cwd=place) as k:
            same("a module that starts threads has them in each fresh process",
                 k.value("import sys, time, threaded\nn = len(threaded.beats); time.sleep(0.1); len(threaded.beats) > n, 'json' in sys.modules, 'decimal' in sys.modules"),
                 "(True, True, True)")
            x = k.armed("1")
            check("and is not armed, which is told", not x.armed and "thread" in x.why, x)
            k.restart()
            same("in the next one too", k.value("import time, threaded\nn = len(threaded.beats); time.sleep(0.1); len(threaded.beats) > n"), "True")


@case
def packing():
    """As the build embeds it: with its bytecode, which another Python passes over."""
    sys.path.insert(0, os.path.dirname(os.path.dirname(driver)))
    import embed
    with open(driver, "rb") as f:
        source = f.read()
    own = subprocess.run([python, "-c", "import importlib.util; print(importlib.util.MAGIC_NUMBER == %r)" % embed.MAGIC_NUMBER],
                         capture_output=True, text=True).stdout == "True\n"
    with tempfile.TemporaryDirectory(prefix="pale-kernel.") as place:
        path = os.path.join(place, "python.py")
        for what, magic in (("with bytecode", embed.MAGIC_NUMBER), ("with bytecode of another Python", b"None")):
            with open(path, "wb") as f:
                f.write(embed.packed(source, magic))
            with Kernel([python, path]) as k:
                x = k.armed("def f():\n    1/0\nf()")
                check(f"packed {what}", x.armed and x.error[0] == "ZeroDivisionError" and "/python.py" not in x.error[2]
                      and "<pale>" not in x.error[2], x)
        with open(path, "wb") as f:
            f.write(embed.packed(b"raise SystemExit('from the source')", b"None"))
        p = subprocess.run([python, path], capture_output=True, text=True)
        same("the source is what runs then", (p.returncode, p.stderr), (1, "from the source\n"))
        broken = embed.packed(b"raise SystemExit('from the bytecode')").replace(b"else:\n", b"else:\n    raise Exception\n")
        with open(path, "wb") as f:
            f.write(broken)
        p = subprocess.run([python, path], capture_output=True, text=True)
        check("and the bytecode otherwise", (p.stderr == "from the bytecode\n") == own, p)


done()
