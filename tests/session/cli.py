"""`pale session` for the tests: a state directory of its own, and every session in it ended at the end."""
import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "egress"))
from tap import *  # noqa: E402, F401, F403

pale, pale_box = (os.path.abspath(p) for p in sys.argv[1:3])
sanitized = "sanitized" in sys.argv[3:]
tmp = tempfile.mkdtemp(prefix="pale-session.")
os.chmod(tmp, 0o755)
env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": tmp, "LANG": "C.UTF-8", "TERM": "xterm",
       "PALE_STATE_DIR": f"{tmp}/state", "XDG_STATE_HOME": f"{tmp}/xdg", "PALE_BOX_PROGRAM": pale_box}
env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
os.chdir(tmp)


def session(*args, **more):
    if "input" not in more:
        more.setdefault("stdin", subprocess.DEVNULL)
    more.setdefault("timeout", 60)
    return subprocess.run([pale, "session", *args], env=env | more.pop("env", {}), text=True, capture_output=True, **more)


def start(*args, **more):
    """In the background."""
    return subprocess.Popen([pale, "session", *args], env=env, stdin=subprocess.DEVNULL, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def new(*args):
    done = session("new", *args)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout.strip()


def execute(name, code, *args, **more):
    return session("exec", name, "-c", code, *args, **more)


def result(name, code, *args, **more):
    """As JSON."""
    done = execute(name, code, "--json", *args, **more)
    return json.loads(done.stdout)


def show(name):
    return json.loads(session("show", name, "--json").stdout)


def printed(o, stream="stdout"):
    return "".join(e["text"] for e in o["events"] if e["type"] == stream)


def value(o):
    return next((e["data"]["text/plain"] for e in o["events"] if e["type"] == "result"), None)


def log(id):
    with open(f"{tmp}/state/runs/{id}/audit.jsonl", encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def says(what, done, status, *texts):
    seen = done.stdout + done.stderr
    return check(what, done.returncode == status and all(t in seen for t in texts), f"{done.returncode}\n{seen[:3000]}")


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


@atexit.register
def end():
    session("rm", "--all")
    shutil.rmtree(tmp, ignore_errors=True)
