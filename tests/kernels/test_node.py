"""The kernel of node: the host program, node and its driver, without a box.

usage: test_node.py HOST DRIVER; PALE_NODE: a node other than that of the system
"""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

from kernel import *

HOST, DRIVER = map(os.path.abspath, sys.argv[1:3])
NODE = os.environ.get("PALE_NODE") or shutil.which("node", path="/usr/local/bin:/usr/bin:/bin")


def node(**more):
    return Kernel([HOST, "node", NODE, DRIVER], **more)


def value(k, what, code, want, out=b""):
    """One execution: the text of its value, what it prints; nothing else."""
    x = k.run(code)
    return check(what, (x.outcome, x.result, x.out, x.err) == (0, want, out, b""),
                 f"want {want!r} {out!r}\n{x!r}")


def fails(k, what, code, name, text, line=None):
    x = k.run(code)
    check(what, x.outcome == 1 and x.error[0] == name and text in x.error[2] and
          (line is None or x.first(ERROR).value == line), f"want {name} {text!r} {line}\n{x!r}")
    return x


def interrupted(k, what, code, delay=0.15, seconds=2.0):
    x = k.start(code)
    time.sleep(delay)
    began = time.monotonic()
    k.interrupt()
    k.finish()
    check(f"a SIGINT ends {what}", x.outcome == 2 and time.monotonic() - began < seconds, x)
    return x


if not NODE:
    skip("the kernel of node", "there is no node", "node")
    done()


@case
def test_values():
    with node() as k:
        m = k.ready
        check("READY says what it is", (m.value, m.key) == (1, "node") and m.text.startswith("Node.js v"), m)
        value(k, "a number", "1 + 1", "2")
        value(k, "a string", "'a' + \"b\"", "'ab'")
        value(k, "an object", "({a: [1, {b: 2}]})", "{ a: [ 1, { b: 2 } ] }")
        value(k, "an object without parentheses", "{a: 1}", "{ a: 1 }")
        value(k, "a block", "{ let q = 1; q + 1 }", "2")
        for code, text in [("null", "null"), ("-0", "-0"), ("NaN", "NaN"), ("10n ** 20n", "100000000000000000000n"),
                           ("Symbol('s')", "Symbol(s)"), ("/a/g", "/a/g"), ("new Map([[1, 2]])", "Map(1) { 1 => 2 }"),
                           ("Promise.resolve(1)", "Promise { 1 }"), ("(function f() {})", "[Function: f]"), ("Infinity", "Infinity")]:
            value(k, f"the value of {code}", code, text)
        value(k, "undefined is no value", "undefined", None)
        value(k, "nor has a declaration one", "let nothing = 5", None)
        value(k, "nothing at all", "", None)
        value(k, "a comment", "// what?", None)
        value(k, "the last of several statements", "1; 2\n3 // end", "3")
        value(k, "a statement's value", "if (true) { 'yes' } else { 'no' }", "'yes'")
        x = k.run("1", rollback=True)
        same("asked for, a rollback is not there, and why is said", (x.armed, x.why), (False, "node cannot be rolled back"))
        same("UNDO is refused", k.undo().kind, REFUSED)
        x = k.run("({[require('util').inspect.custom]() { throw new Error('no') }})")
        check("what cannot be shown says so", x.outcome == 0 and "cannot be shown" in x.result, x)


@case
def test_state():
    with node() as k:
        value(k, "declarations of every kind", "let a = 1; const b = 2; var c = 3; class D { m() { return 4 } }; function e() { return a }", None)
        value(k, "are there in the next execution", "[a, b, c, new D().m(), e()]", "[ 1, 2, 3, 4, 1 ]")
        value(k, "may be declared again", "let a = 5; const b = 6; var c = 7; class D { m() { return 8 } }; function e() { return -a }", None)
        value(k, "and are the new ones", "[a, b, c, new D().m(), e()]", "[ 5, 6, 7, 8, -5 ]")
        fails(k, "a constant is one", "b = 7", "TypeError", "Assignment to constant")
        value(k, "an assignment without a declaration", "free = 1; globalThis.free", "1")
        value(k, "the global object", "globalThis.c + (this === globalThis)", "8")
        value(k, "require", "const { join } = require('path'); join('a', 'b')", "'a/b'")
        value(k, "modules that node knows are there by name", "typeof fs.readFileSync + typeof os.cpus", "'functionfunction'")
        k.run("fs.writeFileSync('m.js', 'exports.x = 1; exports.main = require.main === module'); "
              "fs.writeFileSync('e.mjs', 'export const y = 2; export default 3'); fs.writeFileSync('j.json', '{\"z\":4}'); "
              "fs.mkdirSync('node_modules/p', {recursive: true}); fs.writeFileSync('node_modules/p/package.json', "
              "'{\"name\":\"p\",\"exports\":{\"import\":\"./i.mjs\",\"require\":\"./r.cjs\"}}'); "
              "fs.writeFileSync('node_modules/p/i.mjs', 'export const how = \"import\"'); "
              "fs.writeFileSync('node_modules/p/r.cjs', 'exports.how = \"require\"'); fs.mkdirSync('sub'); "
              "fs.writeFileSync('sub/s.js', 'exports.s = 5')")
        value(k, "require of a file", "require('./m')", "{ x: 1, main: false }")
        value(k, "of a package", "require('p').how", "'require'")
        value(k, "this is the main module", "require.main === module && module.exports === exports", "true")
        value(k, "module.exports", "module.exports = {v: 1}; module.exports", "{ v: 1 }")
        place = os.path.realpath(k.place)
        value(k, "__dirname is the working directory", "__dirname", f"'{place}'")
        check("__filename is in it", (k.run("__filename").result or "").startswith(f"'{place}/<cell "))
        value(k, "import statements", "import d, { y as z } from './e.mjs';\nimport * as ns from \"node:path\"\nimport './m.js'\n"
              "import { how } from 'p'\n[d, z, ns.sep, how]", "[ 3, 2, '/', 'import' ]")
        value(k, "import statements again", "import d, {\n  y\n} from './e.mjs'\nd + y", "5")
        value(k, "of a CommonJS module's names", "import { x } from './m.js'; import all from './m.js'; [x, all.x]", "[ 1, 1 ]")
        fails(k, "of a name that is not there", "import { nope } from './e.mjs'", "SyntaxError", "does not provide an export named 'nope'")
        fails(k, "of a module that is not there", "\nimport 'no-such-module'", "Error", "no-such-module", 2)
        value(k, "import()", "(await import('./e.mjs')).y + (await import('p')).how", "'2import'")
        value(k, "import() in a function of an earlier one", "const later = () => import('node:os'); typeof (await later()).cpus", "'function'")
        value(k, "JSON", "require('./j.json').z", "4")
        value(k, "import.meta", "import.meta.url.startsWith('file:///') && import.meta.dirname === process.cwd()", "true")
        value(k, "exported declarations", "export const ex = 1; export function fx() { return 2 }\nexport { ex }; ex + fx()", "3")
        value(k, "modules after a change of directory", "process.chdir('sub'); [require('./s').s, __dirname.endsWith('/sub')]", "[ 5, true ]")
        value(k, "and import()", "(await import('./s.js')).default.s", "5")
        m = k.restart()
        same("RESTART begins anew", (m.kind, m.key, m.value), (BACK, "fresh", 0))
        value(k, "with nothing of what was", "[typeof a, typeof free, process.cwd()]", f"[ 'undefined', 'undefined', '{place}' ]")


@case
def test_await():
    with node() as k:
        value(k, "await at the top level", "await new Promise(r => setTimeout(r, 20, 'late'))", "'late'")
        value(k, "in a declaration", "const v = await Promise.resolve(7); const { w } = await { w: 8 }; v + w", "15")
        value(k, "that stays", "v", "7")
        value(k, "in a loop", "let sum = 0; for (const x of [1, 2, 3]) sum += await x; sum", "6")
        value(k, "for await", "let got = []; for await (const x of [Promise.resolve(1), 2]) got.push(x); got", "[ 1, 2 ]")
        value(k, "for await over an async generator", "async function* g() { yield 1; await null; yield 2 }\n"
              "got = []; for await (const x of g()) { got.push(x); if (x === 2) break }; got", "[ 1, 2 ]")
        value(k, "in functions of a cell", "async function f(n) { if (n) { await null; return n + await f(n - 1) } return 0 }; await f(50)", "1275")
        value(k, "Promise.all", "await Promise.all([1, 2, 3].map(async x => { await null; return x * 2 }))", "[ 2, 4, 6 ]")
        value(k, "rejections are caught", "try { await Promise.reject(new Error('e')) } catch (e) { e.message }", "'e'")
        x = k.run("const o = { f: async () => 1, a: [async x => x] }, t = async s => s[0], C = class { then(r) { r(6) } };\n"
                  "JSON.stringify([await o.f() + 1, await o['f'](), (await o?.f?.()), await o.a[0](2), await t`x`, await t`${await t`y`}z`, await -1,\n"
                  " await (async () => 3)(), await async function () { return 4 }(), await new C, await new C(), -(await 5), await await 1, await\n2,\n"
                  " await [await 1][0], await { a: 1 }.a, await `a${await 'b'}c`, await /x/.test('x'), await typeof 1, await import('fs') !== null,\n"
                  " await class { static x = 9 }.x, await !0 ? 'y' : 'n', await (1, 2), await 1 ?? 2])")
        same("operands of many kinds", x.result,
             """'[2,1,1,2,"x","",-1,3,4,6,6,-5,1,2,1,1,"abc",true,"number",true,9,"y",2,1]'""")
        x = k.run("const s = 'await x', r = /await [/'\"`] import\\(/.source, q = `await ${'import'} '`, p = { await: 1, import: 2 };\n"
                  "JSON.stringify([s, r, q, p.await, p.import, 4 / 2 / 1, [1] / 1, (4) / 2]); // await import 'x'\n")
        same("texts that only look like it", x.result,
             r"""'["await x","await [/\'\\"`] import\\\\(","await import \'",1,2,2,1,2]'""")
        value(k, "regular expressions after statements", "let n = 0; if (n === 0) /'/.test(\"'\") && n++; await n; n / 1 / 1", "1")
        value(k, "an error in the sorting out of it is the user's own", "var await_ = 1; await_ + (await 1)", "2")
        fails(k, "what cannot be parsed", "await (1", "SyntaxError", "await (1", 1)
        x = k.run("let order = []; setTimeout(() => order.push('timeout')); setImmediate(() => order.push('immediate')); "
                  "process.nextTick(() => order.push('tick')); Promise.resolve().then(() => order.push('promise')); order.push('now'); "
                  "await new Promise(r => setTimeout(r, 30)); order[0] + order[1] + order[2]")
        check("the order of callbacks is node's", x.result in ("'nowtickpromise'", "'nowpromisetick'"), x)
        value(k, "async contexts go along", "const { AsyncLocalStorage } = require('async_hooks'); const als = new AsyncLocalStorage(); "
              "await als.run(5, async () => { await new Promise(r => setTimeout(r, 5)); return als.getStore() })", "5")
        value(k, "ten thousand awaits", "let c = 0; for (let i = 0; i < 10000; i++) c += await 1; c", "10000")
        value(k, "a thousand timers", "let ticks = 0; await new Promise(r => { for (let i = 0; i < 1000; i++) setTimeout(() => { if (++ticks === 1000) r() }) }); ticks", "1000")
        value(k, "promisified timers", "await require('util').promisify(setTimeout)(5, 'v')", "'v'")


@case
def test_errors():
    with node() as k:
        x = fails(k, "an error's frames", "function g() {\n  throw new TypeError('bad')\n}\n\ng()", "TypeError", "at g (<cell 1>:2:9)\n    at <cell 1>:5:1", 2)
        check("are the user's only", "node:" not in x.error[2] and "driver" not in x.error[2] and "pale" not in x.error[2], x)
        same("with its message", x.error[1], "bad")
        fails(k, "a function of an earlier execution", "\n\ng()", "TypeError", "at g (<cell 1>:2:9)\n    at <cell 2>:3:1", 3)
        x = fails(k, "columns are those of the code", "const p = 1; await (await 2, nope)", "ReferenceError", "<cell 3>:1:30", 1)
        fails(k, "a syntax error shows where", "let x = 1;\nlet y = ;", "SyntaxError", "<cell 4>:2\nlet y = ;\n        ^\nSyntaxError: Unexpected token ';'", 2)
        x = fails(k, "over an await", "async function f() {\n  await null\n  throw new Error('deep')\n}\nawait f()", "Error", "at f (<cell 5>:3:9)\n    at async <cell 5>:5:1", 3)
        check("its frames are the user's", "node:" not in x.error[2] and "pale" not in x.error[2], x)
        fails(k, "an error of node's own", "fs.readFileSync('/nonexistent-file')", "Error", "at <cell 6>:1:4", 1)
        fails(k, "also over an await", "\nawait fs.promises.readFile('/nonexistent-file')", "Error", "at async <cell 7>:2:1", 2)
        fails(k, "with its properties", "Object.assign(new Error('e'), {code: 'E1'}).code; throw Object.assign(new Error('e'), {code: 'E1'})", "Error", "code: 'E1'")
        fails(k, "a cause", "throw new Error('outer', {cause: new Error('inner')})", "Error", "inner")
        fails(k, "what is no error", "throw {a: 1}", "Uncaught", "Uncaught { a: 1 }")
        fails(k, "nothing at all", "throw undefined", "Uncaught", "Uncaught undefined")
        fails(k, "an error class of the user's", "class MyError extends Error { get name() { return 'MyError' } }; throw new MyError('m')", "MyError", "m")
        fails(k, "a stack that throws", "throw Object.defineProperty(new Error('s'), 'stack', {get() { throw 1 }})", "Error", "")
        fails(k, "too deep a recursion", "function r() { r() }; r()", "RangeError", "Maximum call stack")
        fails(k, "JSON.parse is no syntax error of the cell's", "\nJSON.parse('{x')", "SyntaxError", "<cell ", 2)
        value(k, "a stack that is read", "new Error('x').stack.split('\\n').length", "2")
        x = k.run("setTimeout(() => { throw new Error('later') }, 10); Promise.reject(new Error('nobody')); 'went on'")
        time.sleep(0.1)
        y = k.run("'alive'")
        check("an uncaught error of a later tick is told, and the session lives", y.result == "'alive'" and b"Uncaught Error: later\n    at "
              in x.err + y.err and b"<cell" in x.err + y.err and x.result == "'went on'", f"{x!r}\n{y!r}")
        check("so is a rejection that nobody handles", b"Uncaught (in promise) Error: nobody" in x.err + y.err, f"{x!r}\n{y!r}")
        x = k.run("process.once('uncaughtException', e => console.log('mine', e.message)); setTimeout(() => { throw new Error('own') }, 1); await new Promise(r => setTimeout(r, 30))")
        check("a listener of the user's has it instead", x.out == b"mine own\n" and x.err == b"" and x.outcome == 0, x)
        x = k.run("setTimeout(() => { throw 5 }, 1); await new Promise(r => setTimeout(r, 30)); 'done'")
        check("one that awaits goes on", x.result == "'done'" and x.err == b"Uncaught 5\n", x)


@case
def test_output():
    with node() as k:
        x = k.run("console.log('a %d', 1); console.error('b'); process.stdout.write('c'); console.table([[1]]); console.group(); console.info('d'); console.groupEnd()")
        check("console and streams", x.out.startswith(b"a 1\nc") and x.out.endswith(b"  d\n") and x.err == b"b\n", x)
        x = k.run("process.stdout.write('x'.repeat(3000000)); process.stderr.write('y'.repeat(1000000)); process.exit(0)")
        same("all of it comes, also before an exit", (len(x.out), len(x.err), x.outcome), (3000000, 1000000, 3))
        x = k.run("for (let i = 0; i < 3; i++) { console.log(i); require('child_process').execSync('echo p' + i, {stdio: 'inherit'}) }")
        same("in order with that of programs", x.out, b"0\np0\n1\np1\n2\np2\n")
        value(k, "a program has no descriptor of ours", "require('child_process').execSync('ls /proc/self/fd').toString()", "'0\\n1\\n2\\n3\\n'")
        x = k.run("fs.readFileSync(0).length + ',' + [...process.argv.slice(1), ...process.execArgv].length")
        same("standard input is empty, no arguments", x.result, "'0,0'")
        x = k.run("display.html('<b>x</b>'); display(Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 255])); display({'application/json': {a: 1}, 'text/plain': 't'});"
                  " display(new Map()); display.markdown('# h'); ({[Symbol.for('Jupyter.display')]() { return {'text/html': '<i>', 'text/plain': 'i'} }})")
        same("what is displayed", x.bundles(), [{"text/html": b"<b>x</b>"}, {"image/png": b"\x89PNG\0\xff"},
             {"application/json": b'{"a":1}', "text/plain": b"t"}, {"text/plain": b"Map(0) {}"}, {"text/markdown": b"# h"},
             {"text/html": b"<i>", "text/plain": b"i"}])
        same("the result says that it is one", [m.flags & RESULT for m in x.all(DATA)], [0, 0, 0, 0, 0, 0, RESULT, RESULT])
        x = k.run("({[Symbol.for('Jupyter.display')]: async () => ({'text/html': await 'later'})})")
        same("a display that takes its time", x.bundles(), [{"text/html": b"later"}])
        x = k.run("display.png(Buffer.alloc(3000000, 7)); display({'text/plain': 'é'.repeat(100000)})")
        same("large ones", [len(list(b.values())[0]) for b in x.bundles()], [3000000, 200000])
        x = k.run("require('child_process').spawn('node', ['-e', 'process.stdout.write(\"n\".repeat(200000))'], {stdio: 'inherit'}).on('exit', () => {});"
                  " for (let i = 0; i < 2000; i++) { process.stdout.write('m'.repeat(100)); await new Promise(r => setImmediate(r)) }")
        check("a pipe that another program has made non-blocking", x.outcome == 0 and x.out.count(b"m") == 200000, x)


@case
def test_input():
    with node() as k:
        x = k.start("const a = await input('Name? '); const b = await input('', {password: true}); const c = await input(); [a, b, c]")
        m = k.wait(INPUT_WANTED)
        same("input is asked for", (m.text, m.value), ("Name? ", 0))
        k.send(INPUT, x.id, 0, "é")
        same("and once more, in secret", k.wait(INPUT_WANTED).value, 1)
        k.send(INPUT, x.id, 0, "b")
        k.wait(INPUT_WANTED)
        k.send(INPUT, x.id, 1)
        k.finish()
        same("what came", x.result, "[ 'é', 'b', null ]")


@case
def test_ends():
    with node() as k:
        for code, want in [("process.exit(3)", 3), ("process.exit()", 0), ("process.exitCode = 4; process.exit()", 4),
                           ("setTimeout(() => process.exit(5), 10); await new Promise(() => {})", 5),
                           ("process.on('exit', () => console.log('bye')); process.exit(6)", 6), ("process.kill(process.pid); await new Promise(() => {})", 143)]:
            x = k.run(f"var gone = 1; {code}")
            check(f"{code}: ends node, not the session", x.outcome == 3 and int(x.first(DONE).key) == want and
                  x.first(BACK).key == "fresh", x)
            x = k.run("typeof gone")
            check(f"{code}: the next one has a fresh one, and says so", x.result == "'undefined'" and
                  [m.kind for m in x.messages[:2]] == [STARTED, NOTE] and str(want % 128 if want > 128 else want) in x.first(NOTE).text, x)
        check("exit handlers run", k.run("process.on('exit', () => console.log('bye')); process.exit()").out == b"bye\n")
        for code, number in [("process.kill(process.pid, 'SIGKILL'); await new Promise(() => {})", 9), ("process.abort()", 6)]:
            x = k.run(code)
            check(f"{code}: BACK fresh, with the wait status", x.outcome is None and x.first(BACK).value & 0x7f == number, x)
            value(k, f"{code}: and it goes on", "1", "1")
        x = k.run("setTimeout(() => process.kill(process.pid, 'SIGKILL'), 50)")
        time.sleep(0.4)
        x = k.run("1")
        check("killed while nothing runs: the next execution says so", x.result == "1" and "between" in x.first(NOTE).text, x)
        ok = True
        for i in range(12):
            x = k.start(f"var keep = 1; for (let i = 0; i < 1e6; i++); {random.choice(['', 'await new Promise(r => setTimeout(r, 10))', 'while(true){}'])}")
            time.sleep(random.random() * 0.05)
            for pid in subprocess.run(["pgrep", "-P", str(k.process.pid), "-x", "node|MainThread"], capture_output=True).stdout.split():
                os.kill(int(pid), signal.SIGKILL)
            k.finish()
            ok = ok and bool(x.first(BACK) or x.outcome == 0)
            again = k.run("'here'"), k.run("'here'")
            ok = ok and again[1].result == "'here'"
        check("kills of node at random moments: BACK, and it goes on", ok, x)


@case
def test_loop():
    with node() as k:
        value(k, "a server", "const server = require('http').createServer((q, r) => r.end('hello ' + q.url)).listen(0, '127.0.0.1'); "
              "await new Promise(r => server.on('listening', r)); typeof server.address().port", "'number'")
        port = int(k.run("server.address().port").result)
        time.sleep(0.05)
        import urllib.request
        same("answers while nothing runs", urllib.request.urlopen(f"http://127.0.0.1:{port}/x", timeout=5).read(), b"hello /x")
        value(k, "and a client in the session", "await (await fetch(`http://127.0.0.1:${server.address().port}/y`)).text()", "'hello /y'")
        k.run("let ticks = 0; const timer = setInterval(() => ticks++, 5)")
        time.sleep(0.2)
        value(k, "timers go on", "ticks > 5", "true")
        interrupted(k, "an execution beside them", "while (true) {}")
        k.run("ticks = 0")
        time.sleep(0.1)
        value(k, "and go on after that", "ticks > 2", "true")
        same("as does the server", urllib.request.urlopen(f"http://127.0.0.1:{port}/z", timeout=5).read(), b"hello /z")
        x = k.run("const child = require('child_process').spawn('sleep', ['300']); child.pid")
        child = int(x.result)
        interrupted(k, "another one", "await new Promise(() => {})")
        check("what an earlier one has started survives it", os.path.exists(f"/proc/{child}"))
        m = k.restart()
        check("but not RESTART", m.kind == BACK and wait_for(lambda: not os.path.exists(f"/proc/{child}")), m)
        value(k, "a worker thread", "const { Worker } = require('worker_threads'); await new Promise(r => new Worker('require(\"worker_threads\")"
              ".parentPort.postMessage(1 + 1)', {eval: true}).on('message', r))", "2")


@case
def test_interrupts():
    with node() as k:
        k.run("let keep = 'me'; const sleep = ms => new Promise(r => setTimeout(r, ms)); globalThis.after = 0; const go = () => { after++ }")
        for what, code in [("a loop", "while (true) {}"), ("one with finally", "try { for (;;); } catch { go() } go()"),
                           ("microtasks without an end", "for (;;) await null"), ("a regular expression", "/(a+)+$/.test('a'.repeat(40) + 'b')"),
                           ("an await", "await new Promise(() => {}); go()"), ("awaits in a loop", "for (;;) { await sleep(5); globalThis.n = (globalThis.n || 0) + 1 }"),
                           ("a loop after an await", "await sleep(20); while (true) {}"),
                           ("awaits in a function", "async function run() { for (;;) { await sleep(3); globalThis.n++ } }; await run()"),
                           ("a loop in such a function", "async function spin() { await sleep(20); for (;;); }; await spin()"),
                           ("a loop in a timer", "setTimeout(() => { for (;;); }, 10); await sleep(1000); go()"),
                           ("ticks without an end", "process.nextTick(function f() { process.nextTick(f) }); await sleep(1)"),
                           ("execSync", "require('child_process').execSync('sleep 100'); go()"), ("spawnSync", "require('child_process').spawnSync('sleep', ['100']); for (;;); go()"),
                           ("Atomics.wait", "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)"),
                           ("for await", "for await (const x of (async function* () { for (;;) { yield await sleep(5) } })()) globalThis.n++")]:
            x = interrupted(k, what, code)
            check(f"{what}: it is said", x.error and x.error[0] == "Interrupted" and x.out == b"", x)
            value(k, f"{what}: variables survive", "globalThis.n = 0; await 1; keep + after", "'me0'")
            time.sleep(0.03)
            value(k, f"{what}: nothing of it goes on", "n", "0")
        k.run("process.on('SIGINT', () => { globalThis.seen = true })")
        interrupted(k, "what has a listener for SIGINT", "await new Promise(() => {})")
        value(k, "which is told", "seen", "true")
        lost = 0
        for i in range(150):
            x = k.start(random.choice(["for (let i = 0; i < 1e6; i++);", "await sleep(2)", "1", "console.log('x'); await null", "await 1; for (let i = 0; i < 1e6; i++);"]))
            time.sleep(random.random() * 0.004)
            k.interrupt()
            k.finish()
            y = k.run(f"keep + {i}")
            lost += (x.outcome not in (0, 2)) + (y.result != f"'me{i}'") + (y.err != b"") + bool(y.first(NOTE))
        same("150 SIGINTs at random moments lose nothing", lost, 0)
        lost = 0
        k.run("globalThis.bg = 0; setInterval(() => bg++, 1)")
        for i in range(30):
            x = k.start("await new Promise(() => {})")
            k.interrupt()
            k.finish()
            lost += x.outcome != 2
        same("an interrupt right after the start is never lost", lost, 0)
        value(k, "a timer in the background outlives that", "bg = 0; await sleep(30); bg > 3", "true")
        value(k, "what waits in the background is not interrupted", "globalThis.ended = 0; (async () => { await sleep(150); ended = 1 })(); 1", "1")
        interrupted(k, "another execution", "await new Promise(() => {})", delay=0.02)
        time.sleep(0.2)
        value(k, "as one sees", "ended", "1")


@case
def test_force():
    with node() as k:
        k.run("let keep = 'me'")
        x = k.start("require('child_process').execSync('trap \"\" INT; sleep 100; sleep 101')")
        time.sleep(0.3)
        k.interrupt()
        time.sleep(0.2)
        check("a program that ignores SIGINT keeps execSync waiting", not x.first(DONE), x)
        k.interrupt(signal.SIGKILL)
        k.finish()
        check("a SIGKILL ends it, and node lives", x.outcome == 2, x)
        value(k, "with its variables", "keep", "'me'")
        x = k.start("require('http').createServer((q, r) => { for (;;); }).listen(0, '127.0.0.1', function () { require('http').get({port: this.address().port}) }); await new Promise(() => {})")
        time.sleep(0.3)
        k.interrupt()
        time.sleep(0.3)
        k.interrupt(signal.SIGKILL)
        k.finish()
        check("what no signal reaches is replaced", x.first(DONE) or x.first(BACK).key == "fresh", x)
        k.run("keep = 1")
        value(k, "and it goes on", "1", "1")
        x = k.start("while (true) {}")
        time.sleep(0.1)
        k.interrupt(signal.SIGKILL)
        k.finish()
        check("a SIGKILL without a SIGINT before gives its memory back", x.first(BACK) and x.first(BACK).key == "fresh", x)


@case
def test_collected():
    """V8 of some versions aborts when the inspector's promise is collected."""
    with node() as k:
        k.run("globalThis.gc = (require('v8').setFlagsFromString('--expose-gc'), require('vm').runInNewContext('gc'))")
        interrupted(k, "an await that nothing holds", "setTimeout(gc, 20); await new Promise(() => {})", delay=0.2)
        value(k, "node lives", "gc(); await 1; gc(); 1", "1")
        interrupted(k, "a function that nothing holds", "setTimeout(gc, 20); await (async () => { await new Promise(() => {}) })()", delay=0.2)
        value(k, "node lives", "gc(); await 1; gc(); 1", "1")


@case
def test_floods():
    with node(timeout=60) as k:
        x = k.run("for (let i = 0; i < 300000; i++) console.log('line', i)", timeout=60)
        check("300000 lines", x.outcome == 0 and x.out.count(b"\n") == 300000)
        x = k.run("for (let i = 0; i < 3000; i++) display.text('n' + i)")
        same("3000 displays", len(x.bundles()), 3000)
        x = interrupted(k, "a flood", "for (;;) console.log('y'.repeat(1000))", delay=0.4, seconds=3)
        check("which was one", len(x.out) > 1000)
        x = interrupted(k, "a flood of displays", "for (;;) display.text('y'.repeat(50000))", seconds=3)
        check("none of them in halves", all(len(b["text/plain"]) == 50000 for b in x.bundles()), len(x.bundles()))
        value(k, "afterwards all is well", "1", "1")
        big = "const big = '" + "x" * (12 << 20) + "'; big.length"
        value(k, "12 MiB of code", big, str(12 << 20))
        x = k.run("'z'.repeat(3e7)")
        check("a huge value is cut", x.outcome == 0 and len(x.result) < 2 << 20, x.outcome)


@case
def test_words():
    with node() as k:
        def complete(code, cursor=-1):
            m = k.ask(COMPLETE, REPLY, REFUSED, value=cursor, data=code)
            return json.loads(m.data) if m.kind == REPLY else m
        k.run("let alpha = {beta: {gamma: 1}, get danger() { globalThis.touched = true; return {x: 1} }}; const alpine = 2; function alright() {}; class Alps {}; "
              "globalThis.touched = false; fs.writeFileSync('file-a.js', '')")
        same("names of every kind", complete("al")["matches"], ["alpha", "alpine", "alright"])
        same("a property", complete("alpha.be"), {"matches": ["beta"], "start": 6, "end": 8})
        check("properties", "gamma" in complete("alpha.beta.")["matches"])
        same("of a chain with ?.", complete("alpha?.beta?.ga")["matches"], ["gamma"])
        same("the cursor counts code points", complete("'é☃𝄞'; alp + 1", 10), {"matches": ["alpha", "alpine"], "start": 7, "end": 10})
        check("of a string", "padStart" in complete("'abc'.pad")["matches"])
        check("keywords", "while" in complete("whi")["matches"])
        same("a getter is not run", complete("alpha.danger.x")["matches"], [])
        same("nor a function", complete("alright().x")["matches"], [])
        value(k, "as one sees", "touched", "false")
        check("modules", "fs/promises" in complete("require('fs")["matches"])
        same("files", complete("require('./fi")["matches"], ["./file-a.js"])

        def inspect(code, cursor):
            return k.ask(INSPECT, REPLY, value=cursor, data=code).text
        check("a value", "beta" in inspect("alpha", 3))
        check("a property", "gamma: 1" in inspect("alpha.beta", 8))
        check("a function, with its text", "function alright" in inspect("alright()", 4))
        check("one of a module", "join" in inspect("path.join", 9))
        same("nothing", inspect("nosuchthing", 3), "")
        x = k.start("await new Promise(r => setTimeout(r, 300))")
        same("not while something runs", k.ask(COMPLETE, REPLY, REFUSED, value=-1, data="al").kind, REFUSED)
        k.current = x
        k.finish()


done()
