"""Ordinary programs run under the filter, in `default` without a single refused call that would be told;
in `strict` those that compute. TAP on stdout. usage: ordinary.py LISTENED"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

listened = os.path.abspath(sys.argv[1])
number = 0
failed = False

PYTHON = """
import json, multiprocessing, os, sqlite3, subprocess, tempfile, threading, zlib
t = threading.Thread(target=lambda: zlib.compress(b"x" * 100000))
t.start(); t.join()
assert subprocess.run(["echo", "sub"], capture_output=True).stdout == b"sub\\n"
assert multiprocessing.Pool(2).map(abs, [1, -2]) == [1, 2]
with tempfile.TemporaryDirectory() as d:
    db = sqlite3.connect(d + "/x.db"); db.execute("create table t(a)"); db.commit(); db.close()
os.sched_getaffinity(0)
"""
SERVER = """
import http.server, threading, urllib.request
s = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=s.serve_forever, daemon=True).start()
assert urllib.request.urlopen("http://127.0.0.1:%d/" % s.server_port).status == 200
"""
COMPUTE = "import threading; t = threading.Thread(target=sum, args=(range(1000),)); t.start(); t.join(); print(1)"
NODE = "const w = require('worker_threads'); new w.Worker('1', {eval: true}); console.log([1, 2].map(x => x * 2))"

BWRAP = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"]

# name, command, works in strict
PROGRAMS = [
    ("python", ["python3", "-c", PYTHON], True),
    ("python, a server and its client", ["python3", "-c", SERVER], False),
    ("python, computing", ["python3", "-c", COMPUTE], True),
    ("node", ["node", "-e", NODE + "; require('child_process').execSync('true')"], True),
    ("gcc", ["gcc", "-O2", "hello.c", "-o", "hello-gcc"], True),
    ("clang", ["clang-14", "hello.c", "-o", "hello-clang"], True),
    ("java", ["java", "Hello.java"], False),
    ("rustc", ["rustc", "hello.rs", "-o", "hello-rust"], True),
    ("go", ["go", "run", "hello.go"], False),
    ("git", ["git", "init", "-q", "repository"], True),
    ("sqlite3", ["sqlite3", "x.db", "create table t(a); insert into t values(1); select count(*) from t"], True),
    ("npm", ["npm", "--offline", "--version"], False),
    ("pip", ["python3", "-m", "pip", "--version"], False),
    ("script", ["script", "-qc", "echo pty", "/dev/null"], False),
    ("tmux", ["tmux", "-S", "socket", "new-session", "-d", "sleep 0.2"], False),
    ("gdb", ["gdb", "-batch", "-ex", "run", "/bin/true"], False),
    ("bash", ["bash", "-c", "for i in 1 2 3; do echo $i | cat; done; wait"], True),
    ("perl", ["perl", "-e", "system('true') == 0 or die; print 1"], True),
    ("tar", ["tar", "-cf", "x.tar", "hello.c"], True),
    ("cp -a", ["cp", "-a", "hello.c", "copy.c"], True),
    ("make", ["make", "-f", "Makefile"], True),
    ("getent", ["getent", "passwd", "root"], True),
]
FILES = {
    "hello.c": "#include <stdio.h>\nint main(void) { puts(\"hi\"); }\n",
    "hello.rs": "fn main() { println!(\"hi\"); }\n",
    "hello.go": "package main\nfunc main() { println(\"hi\") }\n",
    "Hello.java": "class Hello { public static void main(String[] a) { System.out.println(1); } }\n",
    "Makefile": "all: a b\na b:\n\t@echo $@ > $@\n",
}


def result(ok, text, skip=""):
    global number, failed
    number += 1
    failed |= not ok
    print(f"{'ok' if ok else 'not ok'} {number} - {text}{' # SKIP ' + skip if skip else ''}")


def run(where, *command):
    r, w = os.pipe()
    env = dict(os.environ, HOME=where, TMPDIR=where)
    for rust in "RUSTUP_HOME", "CARGO_HOME":
        env.setdefault(rust, os.path.expanduser("~/." + rust[:-5].lower()))
    with subprocess.Popen(command, cwd=where, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, preexec_fn=lambda: os.dup2(w, 3), pass_fds=(3,)) as process:
        os.close(w)
        output = process.communicate(timeout=100)[0].decode(errors="replace").strip()
    with open(r, encoding="utf-8", errors="replace") as f:
        told = [line.rstrip("\n").split("\t") for line in f]
    return process.returncode, output, [" ".join(filter(None, t[2:5])) for t in told if t[0] == "call"]


with tempfile.TemporaryDirectory(prefix="pale-test-ordinary-") as top:
    for profile in "default", "strict", "nested":
        where = os.path.join(top, profile)
        os.mkdir(where)
        for name, text in FILES.items():
            pathlib.Path(where, name).write_text(text, encoding="utf-8")
        for name, command, strict in PROGRAMS if profile != "nested" else [("bubblewrap", BWRAP, False)]:
            if profile == "strict" and not strict:
                continue
            if not shutil.which(command[0]):
                result(True, f"{name} in {profile}", "not installed")
                continue
            if subprocess.run(command, cwd=where, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, env=dict(os.environ, TMPDIR=where), check=False).returncode:
                result(True, f"{name} in {profile}", "does not work without the filter either")
                continue
            shutil.rmtree(os.path.join(where, "repository"), ignore_errors=True)
            pathlib.Path(where, "x.db").unlink(missing_ok=True)
            status, output, told = run(where, listened, profile, "0", *command)
            quiet = not told or profile == "strict"
            result(status == 0 and quiet, f"{name} in {profile}")
            if status or not quiet:
                print(f"# status {status}; refused: {told}; {output[-500:]!r}")
print(f"1..{number}")
sys.exit(failed)
