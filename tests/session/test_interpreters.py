"""The kernels of node and bash in a box: what the box's filter, limits and view leave of tests/kernels/, and the whole
way of an execution that is ended. usage: test_interpreters.py PALE BOX"""
from cli import *

import os
import signal
import time


def ended(o):
    return o["outcome"], o["how"], o["state"], o["status"]


def notes(o):
    return " ".join(e["text"] for e in o["events"] if e["type"] == "note")


@case
def bash():
    name = new("--kernel", "bash")
    o = result(name, "x=5; cd /tmp; echo $0 $(id -un); echo err >&2")
    same("bash: it runs, and prints", (printed(o), printed(o, "stderr"), *ended(o)), ("bash agent\n", "err\n", "ok", None, "kept", 0))
    same("bash: nothing that the kernel does is an attempt to go further", o["blocked"], [])
    check("bash: why it cannot be rolled back is said", "bash cannot be rolled back" in str(o["events"]), o)
    o = result(name, "echo $x $PWD; ls /proc/self/fd; false")
    same("bash: state stays, and programs have no descriptor of ours", (printed(o), ended(o)), ("5 /tmp\n0\n1\n2\n3\n", ("error", None, "kept", 1)))
    o = result(name, "sleep 1000 & echo started")
    check("bash: a job in the background holds nothing up", o["outcome"] == "ok" and o["wall_ms"] < 5000, o)
    o = result(name, "while :; do :; done", "--timeout", "500ms")
    same("bash: a time-out ends a loop, and the state is kept", ended(o)[:3], ("timeout", "signal", "kept"))
    o = result(name, "sh -c 'trap \"\" INT; while :; do sleep 0.1; done'; sleep 100; echo no", "--timeout", "300ms")
    same("bash: also a program that ignores SIGINT", (ended(o)[:3], printed(o)), (("timeout", "signal", "kept"), ""))
    same("bash: as one sees", printed(result(name, "echo $x; kill %1")), "5\n")
    o = result(name, "trap '' INT; while :; do :; done", "--timeout", "300ms")
    same("bash: a shell that ignores it is replaced", ended(o)[:3], ("timeout", "restart", "fresh"))
    same("bash: and goes on", printed(result(name, "echo \"[$x]\"; x=1")), "[]\n")
    o = result(name, "exit 4")
    same("bash: exit ends the shell only", ended(o), ("ended", None, "fresh", 4))
    o = result(name, "echo \"[$x]\"")
    check("bash: which the next execution is told", printed(o) == "[]\n" and "status 4" in notes(o), o)
    for code, status in (("exit 3", 3), ("exec false", 1)):
        a, b, c = (execute(name, line) for line in (code, "echo on", "echo again"))
        same(f"bash: {code}: the exit status is the command's", (a.returncode, a.stdout, b.returncode, b.stdout), (status, "", 0, "on\n"))
        check(f"bash: {code}: which is said once then, and once by the next call",
              a.stderr.count("pale: ") == b.stderr.count("pale: ") == 1 and "the interpreter ended itself" in a.stderr and
              f"the shell ended with status {status}" in b.stderr and "the interpreter" not in b.stderr and not c.stderr,
              (a.stderr, b.stderr, c.stderr))
    o = result(name, "kill -9 $$")
    same("bash: a shell that is killed has died", ended(o)[:3], ("died", None, "fresh"))
    p = start("exec", name, "-c", "x=kept; sleep 100")
    check("bash: it runs", wait_for(lambda: show(name)["session"]["state"] == "busy"))
    time.sleep(0.3)
    session("interrupt", name)
    same("bash: an interrupt ends what runs", p.wait(20), 130)
    p.communicate()
    same("bash: and the state is kept", printed(result(name, "echo $x")), "kept\n")
    same("bash: restart", session("restart", name).returncode, 0)
    same("bash: has nothing of it", printed(result(name, "echo \"[$x]\"")), "[]\n")
    check("bash: undo says why not", "cannot be rolled back" in session("undo", name).stderr or session("undo", name).returncode != 0)
    session("rm", name)


@case
def node():
    name = new("--kernel", "node")
    o = result(name, "let x = await Promise.resolve(5); console.log(process.argv.length); console.error('err'); x")
    same("node: it runs, prints, and has a value", (printed(o), printed(o, "stderr"), value(o), *ended(o)[:3]), ("1\n", "err\n", "5", "ok", None, "kept"))
    same("node: nothing that the kernel does is an attempt to go further", o["blocked"], [])
    o = result(name, "let x = x_ => x_; import { readFileSync } from 'fs'; [typeof x, typeof readFileSync, require('os').userInfo().username]")
    same("node: declarations, modules", value(o), "[ 'function', 'function', 'agent' ]")
    o = result(name, "globalThis.x2 = 7; while (true) {}", "--timeout", "500ms")
    same("node: a time-out ends a loop, and the state is kept", ended(o)[:3], ("timeout", "signal", "kept"))
    o = result(name, "await new Promise(() => {})", "--timeout", "300ms")
    same("node: also what waits", ended(o)[:3], ("timeout", "signal", "kept"))
    o = result(name, "require('child_process').execSync('sleep 100')", "--timeout", "300ms")
    same("node: also for a program", ended(o)[:3], ("timeout", "signal", "kept"))
    same("node: as one sees", value(result(name, "x2")), "7")
    o = result(name, "const s = require('http').createServer((q, r) => r.end('hi')).listen(0, '127.0.0.1'); await new Promise(r => s.on('listening', r)); "
               "await (await fetch('http://127.0.0.1:' + s.address().port)).text()")
    same("node: a server on loopback", value(o), "'hi'")
    o = result(name, "function f() { throw new TypeError('bad') }\nf()")
    e = [e for e in o["events"] if e["type"] == "error"][0]
    check("node: an error has the user's frames", e["name"] == "TypeError" and "at f (<cell" in e["traceback"] and "node:" not in e["traceback"], e)
    o = result(name, "process.exit(4)")
    same("node: process.exit ends node only", ended(o), ("ended", None, "fresh", 4))
    o = result(name, "typeof x2")
    check("node: which the next execution is told", value(o) == "'undefined'" and "status 4" in notes(o), o)
    o = result(name, "process.kill(process.pid, 'SIGKILL')")
    same("node: one that is killed has died", ended(o)[:3], ("died", None, "fresh"))
    same("node: and it goes on", value(result(name, "1 + 1")), "2")
    o = result(name, "const a = []; while (true) a.push(Buffer.alloc(1 << 20, 1))")
    check("node: memory that is used up ends it, and not the session", o["outcome"] in ("memory", "died", "error"), o)
    same("node: and it goes on", value(result(name, "1 + 1")), "2")
    session("rm", name)


done()
