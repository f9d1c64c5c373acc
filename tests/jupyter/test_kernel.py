"""Jupyter's kernel in a box, with the real ipykernel, jupyter_client and nbclient. TAP.

    test_kernel.py PALE
"""
import asyncio
import atexit
import datetime
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request

sys.dont_write_bytecode = True
pale = os.path.abspath(sys.argv[1])
PYTHON = "/usr/bin/python3"
KEY = "a-key-of-this-test-0123456789"
must_work = os.environ.get("PALE_MUST_WORK", "").split(",")
number = failed = 0

place = os.path.realpath(tempfile.mkdtemp(prefix="pale-jupyter."))
home, work, state = (os.path.join(place, d) for d in ("home", "work", "state"))
for d in (home, work, os.path.join(home, ".ssh")):
    os.mkdir(d)
with open(os.path.join(home, ".ssh", "id_ed25519"), "w", encoding="utf-8") as key_file:
    key_file.write("the key\n")
keep = {k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}
# Jupyter leaves some files where temporary ones are.
tempfile.tempdir = os.path.join(place, "tmp")
os.mkdir(tempfile.tempdir)
os.environ.clear()
os.environ.update({"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": home, "LANG": "C.UTF-8", "PALE_STATE_DIR": state, "TMPDIR": tempfile.tempdir,
                   "PYDEVD_DISABLE_FILE_VALIDATION": "1", "JUPYTER_NO_CONFIG": "1", **keep})
os.chdir(work)


@atexit.register
def clean_up():
    os.chdir("/")
    subprocess.run(["chmod", "-R", "u+rwX", place], check=False)
    shutil.rmtree(place, ignore_errors=True)


def check(what, ok, detail=""):
    global number, failed
    number += 1
    failed += not ok
    print(f"{'ok' if ok else 'not ok'} {number} - {what}")
    if not ok and detail != "":
        print("\n".join("# " + line[:400] for line in str(detail).splitlines()[:40]))
    sys.stdout.flush()
    return bool(ok)


def same(what, got, want):
    return check(what, got == want, f"got  {got!r}\nwant {want!r}")


def skip(what, why, ability):
    global number, failed
    number += 1
    bad = ability in must_work
    failed += bad
    print(f"{'not ok' if bad else 'ok'} {number} - {what}" + (f": {why}" if bad else f" # SKIP {why}"))


def case(function):
    try:
        function()
    except Exception:
        check(function.__name__.replace("_", " "), False, traceback.format_exc())


def run(*args, **more):
    return subprocess.run([pale, *args], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, **more)


def says(what, done, status, *texts):
    seen = done.stdout + done.stderr
    check(what, done.returncode == status and all(t in seen for t in texts), f"{done.returncode}\n{seen}")


def events(run_id="last"):
    done = run("audit", "show", "--json", run_id)
    return [json.loads(line) for line in done.stdout.splitlines()]


def last_run():
    return json.loads(run("audit", "list", "--json").stdout.splitlines()[0])


def tree(pid):
    """It and all below it, as (pid, start time)."""
    found, below = [], {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as f:
                    fields = f.read().rpartition(")")[2].split()
                below.setdefault(int(fields[1]), []).append((int(entry), fields[19]))
            except OSError:
                pass
    queue = [pid]
    while queue:
        for child in below.get(queue.pop(), []):
            found.append(child)
            queue.append(child[0])
    return found


def alive(processes):
    left = []
    for pid, start in processes:
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                fields = f.read().rpartition(")")[2].split()
            if fields[19] == start and fields[0] != "Z":
                left.append(pid)
        except OSError:
            pass
    return left


def wait_for(condition, seconds=10):
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.02)
    return condition()


try:
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import KernelManager
    import nbclient
    import nbformat
except ImportError as e:
    skip("the packages of tests/packages are there", str(e), "jupyter")
    print(f"1..{number}")
    sys.exit(failed > 0)


class Kernel:
    """A kernel as Jupyter runs it, with a blocking client."""

    def __init__(self, name="pale", cwd=work, **settings):
        self.log = tempfile.TemporaryFile(dir=place)
        self.km = KernelManager(kernel_name=name, shutdown_wait_time=20)
        self.km.connection_file = os.path.join(home, "kernel.json")
        for key, value in settings.items():
            setattr(self.km, key, value)
        self.km.session.key = KEY.encode()
        self.cwd = cwd
        self.km.start_kernel(cwd=cwd, stdout=self.log, stderr=self.log)
        self.pid = self.km.provisioner.pid
        self.connect()

    def connect(self):
        self.kc = self.km.client()
        self.kc.start_channels()
        try:
            self.kc.wait_for_ready(timeout=60)
        except RuntimeError as e:
            raise RuntimeError(f"{e}: {self.said()}") from None
        self.pid = self.km.provisioner.pid

    def said(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def run(self, code, timeout=30, answers=()):
        """The reply's status, streams by name, MIME bundles, the error's name."""
        got = {"stdout": "", "stderr": "", "data": [], "error": None}
        answers = list(answers)

        def hook(message):
            content = message["content"]
            kind = message["msg_type"]
            if kind == "stream":
                got[content["name"]] += content["text"]
            elif kind in ("display_data", "execute_result", "update_display_data"):
                got["data"].append(content["data"])
            elif kind == "error":
                got["error"] = content["ename"]

        def ask(message):
            got["prompt"] = message["content"]["prompt"]
            self.kc.input(answers.pop(0))

        # What comes soon after an error would be aborted.
        reply = self.kc.execute_interactive(code, timeout=timeout, output_hook=hook, stdin_hook=ask, allow_stdin=True,
                                            stop_on_error=False)
        got["status"] = reply["content"]["status"]
        return got

    def value(self, expression):
        got = self.run(f"print({expression})")
        return got["stdout"].strip() if got["status"] == "ok" else got

    def send(self, code):
        return self.kc.execute(code, stop_on_error=False)

    def reply(self, sent, seconds=10):
        """What is answered to this one, whatever else is."""
        until = time.monotonic() + seconds
        while True:
            message = self.kc.get_shell_msg(timeout=max(0.1, until - time.monotonic()))
            if message["parent_header"].get("msg_id") == sent:
                return message["content"]

    def end(self, **how):
        inside = tree(self.pid)
        self.kc.stop_channels()
        self.km.shutdown_kernel(**how)
        return inside


def kernels():
    return os.path.join(home, ".local/share/jupyter/kernels")


# ---- kernelspecs

def installing():
    spec_dir = os.path.join(kernels(), "pale")
    says("no kernel yet", run("kernelspec", "list"), 0, "kernelspec install")
    says("a kernel is installed for the user", run("kernelspec", "install", "--python", PYTHON), 0, spec_dir)
    with open(os.path.join(spec_dir, "kernel.json"), encoding="utf-8") as f:
        spec = json.load(f)
    same("its command is this program, wherever Jupyter is", spec["argv"],
         [os.path.realpath(pale), "jupyter-kernel", "-f", "{connection_file}", "--python", PYTHON, "--"])
    same("interrupts come as signals, and there is no debugger",
         (spec["interrupt_mode"], spec["metadata"]["debugger"], spec["language"]), ("signal", False, "python"))
    found = KernelSpecManager().get_kernel_spec("pale")
    same("Jupyter finds it", (found.display_name, found.interrupt_mode), ("Python 3 (Pale)", "signal"))
    check("with a logo", os.path.exists(os.path.join(found.resource_dir, "logo-svg.svg")))
    says("pale kernelspec list has it", run("kernelspec", "list"), 0, "pale", PYTHON, spec_dir)
    says("it can be installed anew", run("kernelspec", "install", "--python", PYTHON, "--display-name", "Other"), 0)
    same("then the new one counts", KernelSpecManager().get_kernel_spec("pale").display_name, "Other")
    run("kernelspec", "install", "--python", PYTHON)

    with open("mine.yaml", "w", encoding="utf-8") as f:
        f.write("pale: 1\nlimits: {memory: 1GiB}\n")
    says("policy options are kept", run("kernelspec", "install", "--python", PYTHON, "--name", "flags", "-p", "mine.yaml",
                                       "--memory", "2GiB", "--ro", "data", "--prefix", os.path.join(place, "prefix"), "--no-check"), 0)
    with open(os.path.join(place, "prefix/share/jupyter/kernels/flags/kernel.json"), encoding="utf-8") as f:
        argv = json.load(f)["argv"]
    same("... a policy's file by its absolute path", argv[6:],
         [f"--policy={work}/mine.yaml", "--memory=2GiB", "--ro=data", "--"])
    more = {**os.environ, "JUPYTER_PATH": os.path.join(place, "prefix/share/jupyter")}
    listed = json.loads(run("kernelspec", "list", "--json", env=more).stdout)
    same("$JUPYTER_PATH is looked at", sorted(listed), ["flags", "pale"])
    says("what is wrong in them is told now", run("kernelspec", "install", "--python", PYTHON, "--memory", "much"), 125, "much")
    says("a policy from standard input is refused", run("kernelspec", "install", "--python", PYTHON, "-p", "-"), 125, "gone later")

    os.makedirs(os.path.join(kernels(), "other"))
    with open(os.path.join(kernels(), "other", "kernel.json"), "w", encoding="utf-8") as f:
        json.dump({"argv": ["x"], "display_name": "X", "language": "x"}, f)
    says("another's kernel is not written over", run("kernelspec", "install", "--python", PYTHON, "--name", "other"), 125, "not Pale's")
    says("nor removed", run("kernelspec", "remove", "other"), 125, "not Pale's")
    check("nor listed", "other" not in json.loads(run("kernelspec", "list", "--json").stdout))
    says("a name is a name", run("kernelspec", "install", "--name", "../x"), 2, "--name")
    says("there is no such kernel", run("kernelspec", "remove", "none"), 125, "none")
    says("a kernel is removed", run("kernelspec", "remove", "flags", "--prefix", os.path.join(place, "prefix")), 0, "Removed")
    check("with its directory", not os.path.exists(os.path.join(place, "prefix/share/jupyter/kernels/flags")))

    subprocess.run([PYTHON, "-m", "venv", "--without-pip", os.path.join(place, "bare")], check=True)
    says("an interpreter without ipykernel is refused, with the remedy",
         run("kernelspec", "install", "--python", os.path.join(place, "bare/bin/python")), 125, "pip install ipykernel")
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", "--system-site-packages", os.path.join(place, "venv")], check=True)
    python = os.path.join(place, "venv/bin/python")
    says("one in a virtual environment is installed into that", run("kernelspec", "install", "--sys-prefix", "--name", "venv", "--python", python),
         0, os.path.join(place, "venv/share/jupyter/kernels/venv"), python)


# ---- the kernel

RICH = """
import matplotlib.pyplot as plt, pandas
plt.plot([1, 2, 3]); plt.show()
display(pandas.DataFrame({'a': [1, 2]}))
"""


def a_notebooks_life():
    with open("data.csv", "w", encoding="utf-8") as f:
        f.write("1,2\n")
    k = Kernel()
    inside = tree(k.pid)
    check("a kernel runs, below its supervisor", inside)
    got = k.run("print(6 * 7); 1 + 1")
    same("it executes, and has a result", (got["status"], got["stdout"], got["data"]), ("ok", "42\n", [{"text/plain": "2"}]))
    got = k.run(RICH, timeout=60)
    kinds = [sorted(d) for d in got["data"]]
    check("rich output comes: a picture and a table", ["image/png", "text/plain"] in kinds and ["text/html", "text/plain"] in kinds, got)
    same("it is where the notebook is, and sees what is beside it", k.value("(__import__('os').getcwd(), open('data.csv').read())"),
         str((work, "1,2\n")))
    same("a magic works", k.run("%who_ls")["status"], "ok")
    same("a shell line works", k.run("!echo from $((40 + 2))")["stdout"].strip(), "from 42")
    got = k.run("name = input('who? '); import getpass; word = getpass.getpass('word? ')\nprint(name, word)", answers=["me", "secret"])
    same("input comes by the stdin channel", (got["stdout"], got["prompt"]), ("me secret\n", "word? "))
    got = k.run("h = display('one', display_id='d'); h.update('two')")
    check("a display is updated", {"text/plain": "'two'"} in got["data"], got)
    matches = k.kc.complete("import nump", 11, reply=True, timeout=10)["content"]["matches"]
    check("completion works", "numpy" in matches, matches)

    k.run("kept = [1]")
    begun = time.monotonic()
    sent = k.send("while True: pass")
    time.sleep(0.5)
    k.km.interrupt_kernel()
    reply = k.reply(sent)
    check("a loop is interrupted", reply["status"] == "error" and reply["ename"] == "KeyboardInterrupt", reply)
    same("and the state survives", k.value("kept"), "[1]")
    sent = k.send("!sleep 60")
    time.sleep(0.7)
    k.km.interrupt_kernel()
    k.reply(sent)
    for _ in range(5):
        k.km.interrupt_kernel()
    time.sleep(0.5)  # ipykernel forgets to answer what it was about to begin when a signal came
    same("as often as one likes, also when nothing runs", k.value("kept"), "[1]")
    check("... and soon", time.monotonic() - begun < 20)
    check("the kernel is alive for Jupyter", k.km.is_alive() and k.kc.is_alive())

    # ---- attempts
    before = last_run()["id"]
    got = k.run(f"open({os.path.join(home, '.ssh', 'id_ed25519')!r}).read()")
    same("the caller's key is not there", got["error"], "FileNotFoundError")
    got = k.run("import socket; socket.create_connection(('192.0.2.1', 443), timeout=5)")
    check("nor is a network", got["error"] in ("PermissionError", "OSError"), got)
    got = k.run("socket.getaddrinfo('exfiltrate.example.com', 443)")
    same("nor are names", got["error"], "gaierror")
    same("the host's loopback is another", k.run("socket.create_connection(('127.0.0.1', 22), timeout=5)")["error"], "ConnectionRefusedError")
    same("the kernel's file is the user's alone", k.value("oct(__import__('os').stat(__import__('ipykernel').get_connection_file()).st_mode & 0o777)"), "0o600")
    same("none of the caller's environment is there", k.value("'PALE_STATE_DIR' in __import__('os').environ"), "False")
    k.run("open('result.txt', 'w').write('x'); open('data.csv', 'a').write('3,4\\n')")

    # ---- restart
    k.km.restart_kernel()
    k.kc.stop_channels()
    k.connect()
    same("restarted, its state is gone", k.run("kept")["error"], "NameError")
    check("and the box before has ended", not alive(inside), alive(inside))
    blocked = [e for e in events(before) if e.get("event", "").endswith("blocked") or "blocked" in e.get("event", "")]
    text = json.dumps(events(before))
    check("what was tried is in the audit log", "id_ed25519" in text and "192.0.2.1" in text and "exfiltrate.example.com" in text, blocked)
    same("which is whole, and says how it ended", (run("audit", "verify", before).returncode, events(before)[-1]["outcome"]), (0, "exit"))
    says("what the notebook changed waits for review", run("diff", before), 0, "result.txt", "data.csv")
    with open("data.csv", encoding="utf-8") as f:
        same("and the host's files are as they were", (f.read(), os.path.exists("result.txt")), ("1,2\n", False))
    inside = tree(k.pid)
    k.km.restart_kernel(now=True)
    k.kc.stop_channels()
    k.connect()
    same("restarted by force, on the same ports, it works", k.value("1 + 1"), "2")
    check("and the box before is dead", wait_for(lambda: not alive(inside)), alive(inside))
    inside = k.end()
    check("shut down, nothing is left running", not alive(inside), alive(inside))
    runs = [json.loads(line) for line in run("audit", "list", "--json").stdout.splitlines()]
    check("and no run is", all(r["outcome"] != "running" for r in runs), runs)
    text = "".join(open(os.path.join(state, "runs", r["id"], "audit.jsonl"), encoding="utf-8").read() for r in runs)
    check("the key that signs messages is in no log", KEY not in text)
    check("a kernel is blocked in nothing by itself", not events(last_run()["id"])[-1]["blocked"], events(last_run()["id"])[-1])
    check("nor is a line of Pale's about what nobody asked", "not reached" not in k.said(), k.said())


def over_unix_sockets():
    k = Kernel(transport="ipc")
    base = k.km.ip
    sockets = [f"{base}-{getattr(k.km, c + '_port')}" for c in ("shell", "iopub", "stdin", "control", "hb")]
    modes = [os.stat(s).st_mode for s in sockets]
    check("with ipc each channel is a Unix socket of the user's", all(stat.S_ISSOCK(m) and m & 0o777 == 0o600 for m in modes), modes)
    same("and works", k.value("6 * 7"), "42")
    k.km.restart_kernel(now=True)
    k.kc.stop_channels()
    k.connect()
    same("also after a forced restart", k.value("6 * 7"), "42")
    k.end()
    check("shut down, no socket is left", not any(map(os.path.exists, sockets)), os.listdir(os.path.dirname(base)))
    listening = [e for r in events() if r["event"] == "network.published" for e in r["ports"]]
    check("no port of the host was used", len(listening) == 5 and all("path" in e for e in listening), listening)


def nbclient_executes_a_notebook():
    nb = nbformat.v4.new_notebook(cells=[
        nbformat.v4.new_code_cell("x = 2"), nbformat.v4.new_code_cell(RICH), nbformat.v4.new_code_cell("print(x * 21)\nx")])
    nbclient.NotebookClient(nb, kernel_name="pale", timeout=60, resources={"metadata": {"path": work}}).execute()
    outputs = [o for cell in nb.cells for o in cell.get("outputs", [])]
    check("nbclient executes a notebook", any("image/png" in o.get("data", {}) for o in outputs)
          and any(o.get("text") == "42\n" for o in outputs) and any(o.get("data", {}).get("text/plain") == "2" for o in outputs), outputs)
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 / 0")])
    try:
        nbclient.NotebookClient(nb, kernel_name="pale", timeout=60, resources={"metadata": {"path": work}}).execute()
        check("an error in a cell is one", False)
    except nbclient.exceptions.CellExecutionError as e:
        same("an error in a cell is one", e.ename, "ZeroDivisionError")
    same("and the box has ended", last_run()["outcome"], "exit")


def other_interpreters():
    os.environ["JUPYTER_PATH"] = os.path.join(place, "venv/share/jupyter")
    k = Kernel("venv")
    del os.environ["JUPYTER_PATH"]
    same("the kernel of a virtual environment runs that", k.value("__import__('sys').prefix"), os.path.join(place, "venv"))
    k.end()


def extra_arguments():
    k = KernelManager(kernel_name="pale")
    k.start_kernel(cwd=work, extra_arguments=["--IPKernelApp.exec_lines=x = 5"])
    kc = k.client()
    kc.start_channels()
    kc.wait_for_ready(timeout=60)
    same("what Jupyter adds is ipykernel's", kc.execute_interactive("assert x == 5", timeout=10)["content"]["status"], "ok")
    kc.stop_channels()
    k.shutdown_kernel()


def in_the_home_directory():
    k = Kernel(cwd=home)
    same("a notebook in the home directory sees nothing of it", k.value("__import__('os').path.exists(%r)" % home), "False")
    check("and the log of Jupyter says so", "home directory" in k.said(), k.said())
    k.end()


def what_the_kernel_prints_itself():
    k = Kernel()
    k.run("import os, sys; os.write(sys.stdout._original_stdstream_copy, b'said \\x1b]0;title\\x07 \"so\"\\n')")
    k.end()
    said = k.said()
    check("the kernel's own lines come, without what a terminal obeys", 'said \\x1b]0;title\\a "so"' in said and "\x1b" not in said, said)


def ends():
    k = Kernel()
    k.kc.execute("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: pass")
    time.sleep(0.5)
    inside = tree(k.pid)
    os.kill(k.pid, signal.SIGTERM)
    # Ours to reap, as Jupyter would.
    check("a kernel that ignores SIGTERM is ended all the same", wait_for(lambda: k.km.provisioner.process.poll() is not None), "")
    check("and all of it", not alive(inside), alive(inside))
    same("which the log says", last_run()["outcome"], "interrupted")
    times = {e["event"]: datetime.datetime.fromisoformat(e["time"].rstrip("Z")) for e in events()}
    took = (times["box.end"] - times["interrupt"]).total_seconds()
    # 1 s of grace and some slack; Jupyter kills after 2.5.
    check("before Jupyter would kill it", 0.9 < took < 4, took)
    k.kc.stop_channels()
    k.km.shutdown_kernel(now=True)

    code = ("import os, sys, time\nfrom jupyter_client.manager import KernelManager\nk = KernelManager(kernel_name='pale')\n"
            "k.start_kernel(cwd=sys.argv[1])\nc = k.client(); c.start_channels(); c.wait_for_ready(timeout=60)\n"
            "c.execute_interactive('f = open(\"left.txt\", \"w\"); f.write(\"x\"); f.close()', timeout=10)\n"
            "print(k.provisioner.pid, flush=True)\ntime.sleep(100)\n")
    jupyter = subprocess.Popen([PYTHON, "-B", "-c", code, work], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    pid = int(jupyter.stdout.readline())
    inside = [(p, s) for p, s in tree(os.getpid()) if p == pid] + tree(pid)
    jupyter.kill()
    jupyter.wait()
    check("when Jupyter is killed its kernel ends", wait_for(lambda: not alive(inside)), alive(inside))
    newest = last_run()
    same("in good order", newest["outcome"], "destroyed")
    says("and what it changed is kept", run("diff", newest["id"]), 0, "left.txt")


def below_jupyters_server():
    """What JupyterLab does: kernels by the server's REST interface, messages by its WebSocket."""
    token = "test-token"
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    with open(os.path.join(place, "server.log"), "wb") as log:
        server = subprocess.Popen(
            [PYTHON, "-m", "jupyter_server", "--no-browser", "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.allow_root=True",
             f"--ServerApp.token={token}", "--ServerApp.terminals_enabled=False", f"--ServerApp.root_dir={place}"], stdout=log, stderr=log)

    url = f"http://127.0.0.1:{port}/"

    def ask(method, path, body=None):
        request = urllib.request.Request(url + path, method=method, data=json.dumps(body).encode() if body is not None else None,
                                         headers={"Authorization": f"token {token}"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
            return json.loads(text) if text else None

    def running():
        try:
            return ask("GET", "api/status")
        except OSError:
            return None

    check("Jupyter's server starts", wait_for(running, 60))
    specs = ask("GET", "api/kernelspecs")["kernelspecs"]
    check("it offers the kernel, with its logo", "logo-svg" in specs["pale"]["resources"], specs)
    os.makedirs(os.path.join(place, "notebooks"), exist_ok=True)
    kernel = ask("POST", "api/kernels", {"name": "pale", "path": "notebooks/a.ipynb"})["id"]

    async def talk():
        import tornado.websocket
        door = await tornado.websocket.websocket_connect(tornado.httpclient.HTTPRequest(
            f"{url.replace('http', 'ws', 1)}api/kernels/{kernel}/channels?session_id=s", headers={"Authorization": f"token {token}"}))

        async def execute(code, meanwhile=None):
            await door.write_message(json.dumps({
                "header": {"msg_id": code, "username": "", "session": "s", "msg_type": "execute_request", "version": "5.3"},
                "parent_header": {}, "metadata": {}, "channel": "shell", "buffers": [],
                "content": {"code": code, "silent": False, "stop_on_error": False}}))
            text, reply, idle = "", None, False
            while not (reply and idle):
                message = json.loads(await asyncio.wait_for(door.read_message(), 60))
                if message["parent_header"].get("msg_id") != code:
                    continue
                if message["msg_type"] == "stream":
                    text += message["content"]["text"]
                if message["msg_type"] == "execute_input" and meanwhile:
                    await asyncio.sleep(0.5)
                    await asyncio.get_running_loop().run_in_executor(None, meanwhile)
                if message["msg_type"] == "execute_reply":
                    reply = message["content"]
                idle |= message["msg_type"] == "status" and message["content"]["execution_state"] == "idle"
            return text, reply

        first = await execute("import os; print(os.getcwd()); x = 5")
        second = await execute("while True: pass", lambda: ask("POST", f"api/kernels/{kernel}/interrupt", {}))
        third = await execute("print(x)")
        door.close()
        return first, second, third

    first, second, third = asyncio.run(talk())
    same("a cell runs where the notebook is", first[0].strip(), os.path.join(place, "notebooks"))
    same("it is interrupted", second[1].get("ename"), "KeyboardInterrupt")
    same("and goes on", third[0], "5\n")
    ask("POST", f"api/kernels/{kernel}/restart", {})
    same("it is restarted", [k["id"] for k in ask("GET", "api/kernels")], [kernel])
    inside = tree(server.pid)
    ask("DELETE", f"api/kernels/{kernel}")
    check("shut down, it is gone", wait_for(lambda: not alive(inside)), alive(inside))
    kernel = ask("POST", "api/kernels", {"name": "pale"})["id"]
    check("another starts", wait_for(lambda: len(tree(server.pid)) > 3, 30), tree(server.pid))
    inside = tree(server.pid)
    server.kill()
    server.wait()
    check("and ends when the server is killed", wait_for(lambda: not alive(inside)), alive(inside))


def wrong_connection_files():
    good = {"transport": "tcp", "ip": "127.0.0.1", "key": "k", "signature_scheme": "hmac-sha256", "shell_port": 45001,
            "iopub_port": 45002, "stdin_port": 45003, "control_port": 45004, "hb_port": 45005}

    def attempt(**changes):
        with open(os.path.join(place, "c.json"), "w", encoding="utf-8") as f:
            json.dump({k: v for k, v in {**good, **changes}.items() if v is not None}, f)
        return run("jupyter-kernel", "-f", os.path.join(place, "c.json"), "--python", PYTHON)

    says("a connection file is needed", run("jupyter-kernel"), 125, "-f FILE")
    says("one that is there", run("jupyter-kernel", "-f", "/nonexistent"), 125, "connection file")
    for what, changes, words in (
            ("a port beyond all ports", {"shell_port": 65536}, ["shell_port"]), ("port 0", {"hb_port": 0}, ["hb_port"]),
            ("a port that is a text", {"stdin_port": "45003"}, ["stdin_port"]), ("no port", {"control_port": None}, ["control_port"]),
            ("a port twice", {"iopub_port": 45001}, ["iopub_port", "shell_port"]),
            ("an address of all", {"ip": "0.0.0.0"}, ["loopback"]), ("another machine's address", {"ip": "192.0.2.1"}, ["loopback"]),
            ("no text for a key", {"key": 5}, ["key"]), ("an unknown transport", {"transport": "udp"}, ["transport"]),
            ("an unknown signature", {"signature_scheme": "none"}, ["signature_scheme"]),
            ("sockets in no directory", {"transport": "ipc", "ip": "/nonexistent/k"}, ["/nonexistent/k"])):
        says(f"refused: {what}", attempt(**changes), 125, "connection file", *words)
    with open(os.path.join(place, "c.json"), "w", encoding="utf-8") as f:
        f.write("[")
    says("refused: what is no JSON", run("jupyter-kernel", "-f", os.path.join(place, "c.json")), 125, "JSON")


for test in (installing, a_notebooks_life, over_unix_sockets, nbclient_executes_a_notebook, below_jupyters_server, other_interpreters, extra_arguments,
             in_the_home_directory, what_the_kernel_prints_itself, ends, wrong_connection_files):
    case(test)
print(f"1..{number}")
sys.stdout.flush()
sys.exit(failed > 0)
