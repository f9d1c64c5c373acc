"""pale session cp: files to and from a session, also from a box that is not well-behaved. usage: test_cp.py PALE BOX"""
from cli import *

import os
import shutil
import stat
import subprocess


def cp(*args, **more):
    return session("cp", *args, **more)


def content(path):
    with open(path, "rb") as f:
        return f.read()


def tree(top):
    """path: content, or None of a directory, or what else it is."""
    found = {}
    for path, directories, files in os.walk(os.fsencode(top)):
        for name in directories + files:
            whole = os.path.join(path, name)
            mode = os.lstat(whole).st_mode
            found[os.path.relpath(whole, os.fsencode(top))] = (os.readlink(whole) if stat.S_ISLNK(mode) else None if stat.S_ISDIR(mode) else content(whole) if stat.S_ISREG(mode) else stat.S_IFMT(mode))
    return found


@case
def back_and_forth():
    os.makedirs("shown")
    new("--name", "w", "--ro", "shown", "--disk", "64MiB")
    with open("data.csv", "wb") as f:
        f.write(b"a,b\n\xff\0\n")
    os.chmod("data.csv", 0o750)
    same("into the directory in which it was started", (cp("data.csv", "w:/tmp").returncode, cp("data.csv", "w:/tmp/new").returncode), (0, 0))
    same("... with contents and permissions", execute("w", "import os; [(open(p, 'rb').read(), oct(os.stat(p).st_mode & 0o7777)) for p in ('/tmp/data.csv', '/tmp/new')]").stdout,
         "[(b'a,b\\n\\xff\\x00\\n', '0o750'), (b'a,b\\n\\xff\\x00\\n', '0o750')]\n")
    same("over what is there", execute("w", "_ = open('/tmp/new', 'w').write('longer than that')").returncode or cp("data.csv", "w:/tmp/new").returncode, 0)
    same("... wholly", execute("w", "os.path.getsize('/tmp/new')").stdout, "7\n")
    execute("w", "open('/tmp/out', 'wb').write(b'x' * 7_000_001); os.chmod('/tmp/out', 0o4711)")
    same("out, to a name", cp("w:/tmp/out", "got").returncode, 0)
    check("... more than fits into one answer, whole, without set-uid", content("got") == b"x" * 7_000_001 and os.stat("got").st_mode & 0o7777 == 0o711 & ~0o022, oct(os.stat("got").st_mode))
    os.makedirs("into")
    same("... to a directory", (cp("w:/tmp/out", "w:/tmp/new", "into").returncode, sorted(os.listdir("into"))), (0, ["new", "out"]))
    with open("big", "wb") as f:
        f.write(os.urandom(9_000_000))
    cp("big", "w:/tmp/big")
    cp("w:/tmp/big", "big2")
    check("the same comes back", content("big") == content("big2"))
    done = subprocess.run([pale, "session", "cp", "-", "w:/tmp/in"], input=b"\0piped\xff", env=env, capture_output=True)
    out = subprocess.run([pale, "session", "cp", "w:/tmp/in", "-"], env=env, capture_output=True)
    same("by standard input and output", (done.returncode, out.stdout), (0, b"\0piped\xff"))
    cp("/dev/null", "w:/tmp/x")
    with open("empty", "wb"):
        pass
    same("an empty one", (cp("empty", "w:/tmp/empty").returncode, cp("w:/tmp/empty", "empty2").returncode, content("empty2")), (0, 0, b""))
    with open("./a:b", "w", encoding="utf-8") as f:
        f.write("colon")
    same("a name with a colon", (cp("./a:b", "w:/tmp/colon").returncode, execute("w", "open('/tmp/colon').read()").stdout), (0, "'colon'\n"))
    os.makedirs("d/deep/er")
    for name in (b"d/one", b"d/deep/two", b"d/\xff\n", b"d/\xc3\xa4"):
        with open(name, "wb") as f:
            f.write(name)
    os.symlink("deep/two", "d/link")
    os.symlink("../one", b"d/deep/\xffup")
    os.mkfifo("d/fifo")
    says("a directory needs --recursive", cp("d", "w:/tmp"), 1, "--recursive")
    done = cp("-r", "d", "w:/tmp")
    says("with it, all of it, but what is no file", done, 1, "left out", '"fifo"')
    check("... and no more is missing", done.stderr.count("left out") == 1, done.stderr)
    os.unlink("d/fifo")
    same("... comes back as it was", (cp("-r", "w:/tmp/d", "back").returncode, tree("back")), (0, tree("d")))
    same("... also over itself", (cp("-r", "w:/tmp/d", ".").returncode, tree("d")), (0, tree("back")))
    check("... its links as links", tree("back")[b"link"] == b"deep/two" and tree("back")[b"deep/\xffup"] == b"../one", tree("back"))
    os.symlink("/etc/hostname", "d/away")
    same("into the box also one that leads elsewhere, over what is there",
         (cp("-r", "d", "w:/tmp").returncode, cp("-r", "d", "w:/tmp").returncode, execute("w", "os.readlink('/tmp/d/away')").stdout),
         (0, 0, "'/etc/hostname'\n"))
    says("... which does not come back", cp("-r", "w:/tmp/d", "back"), 1, "may lead out", "away")
    check("... at all", not os.path.lexists("back/d/away") and os.path.lexists("back/d/link"), tree("back"))
    os.unlink("d/away")
    names = 2500
    execute("w", f"os.mkdir('/tmp/many')\nfor i in range({names}): open(f'/tmp/many/{{i}}', 'w').close()")
    same("more than are listed at once", (cp("-r", "w:/tmp/many", ".").returncode, len(os.listdir("many"))), (0, names))
    for what, args, status, text in (
            ("no such file", ("w:/tmp/none", "."), 1, "No such file"), ("none on the host", ("none", "w:/tmp"), 1, "none"),
            ("no such directory there", ("data.csv", "w:/none/x"), 1, "No such file"), ("nor here", ("w:/tmp/new", "none/x"), 1, "none"),
            ("what is read-only", ("data.csv", f"w:{tmp}/shown/x"), 1, "Read-only"), ("what its user may not", ("data.csv", "w:/etc/x"), 1, "cannot write"),
            ("what is not in its view", (f"w:{tmp}/data.csv", "stolen"), 1, "No such file"), ("two sessions", ("w:a", "v:b", "."), 2, "one session"),
            ("no session", ("a", "b"), 2, "SESSION:PATH"), ("both in one", ("w:a", "w:b"), 2, "either"), ("one thing", ("w:a",), 2, "where"),
            ("several to a file", ("data.csv", "big", "w:/tmp/new"), 2, "directory"), ("several to a file here", ("w:/tmp/new", "w:/tmp/out", "got"), 2, "directory"),
            ("a session that is not there", ("nope:a", "."), 125, "nope"), ("a file as a directory", ("w:/tmp/new", "missing/"), 1, "no directory")):
        says(what, cp(*args), status, text)
    check("... and nothing came of it", not os.listdir("shown") and not os.path.exists("stolen"))
    with open("larger", "wb") as f:
        f.truncate(100 << 20)
    says("more than the box may have", cp("larger", "w:/tmp/larger"), 1, "No space")
    same("... and the session goes on", execute("w", "6 * 7").stdout, "42\n")
    session("freeze", "w")
    same("out of a frozen one", (cp("w:/tmp/in", "frozen").returncode, content("frozen")), (0, b"\0piped\xff"))
    session("rm", "w")


@case
def hostile():
    new("--name", "h")
    execute("h", """
import os
os.mkdir('/tmp/d')
os.symlink('/etc', '/tmp/d/link')
os.symlink('/etc/passwd', '/tmp/d/file')
os.symlink('..', '/tmp/d/up')
os.mkdir('/tmp/d/in')
os.symlink('../one', '/tmp/d/in/good')
os.symlink('../in/../../../etc', '/tmp/d/in/around')
open('/tmp/d/\\x1b]0;owned\\x07', 'w').close()
open('/tmp/d/.pale-1.1', 'w').close()
os.mkfifo('/tmp/d/fifo')
with open('/tmp/d/huge', 'wb') as f: f.truncate(200 << 20)
d = '/tmp/deep'
os.mkdir(d)
os.chdir(d)
for i in range(400):
    os.mkdir('a'); os.chdir('a')
os.chdir('/')
""")
    os.makedirs("out/d")
    os.symlink("/etc", "out/d/sub")
    execute("h", "os.mkdir('/tmp/d/sub'); open('/tmp/d/sub/x', 'w').close()")
    done = cp("-r", "h:/tmp/d", "out")
    says("links that lead out, pipes and the like are left out", done, 1, '"/tmp/d/link"', '"/tmp/d/file"', '"/tmp/d/up"', '"/tmp/d/in/around"', '"/tmp/d/fifo"')
    same("... and no other is", [f for f in os.listdir("out/d/in")], ["good"])
    check("... what stands in the way on the host is not followed", not os.path.exists("/etc/x") and os.path.islink("out/d/sub") and "sub" in done.stderr, done.stderr)
    check("... names reach no terminal", "\x1b" not in done.stdout + done.stderr, done.stderr)
    check("... holes fill no disk", os.stat("out/d/huge").st_size == 200 << 20 and os.stat("out/d/huge").st_blocks * 512 < 1 << 20, os.stat("out/d/huge"))
    done = cp("-r", "h:/tmp/deep", "out")
    says("too deep is told", done, 1, "too deep")
    shutil.rmtree("out")
    p = start("exec", "h", "-c", "import os, itertools\nfor i in itertools.count():\n    os.makedirs('/tmp/r/x', exist_ok=True)\n    open('/tmp/r/x/f', 'w').close()\n    os.rename('/tmp/r/x', '/tmp/r/y'); os.symlink('/etc', '/tmp/r/x'); os.unlink('/tmp/r/x'); os.rename('/tmp/r/y', '/tmp/r/x')")
    for i in range(20):
        cp("-r", "h:/tmp/r", f"race{i}")
    found = [os.path.join(path, name) for i in range(20) for path, directories, files in os.walk(f"race{i}") for name in directories + files]
    check("what changes meanwhile leads nowhere but in the box", not any(os.path.islink(f) and os.readlink(f).startswith("/") for f in found) and
          not any(content(f) == content("/etc/passwd") for f in found if f.endswith("/passwd")), found)
    session("interrupt", "h")
    p.communicate(timeout=20)
    session("rm", "h")


done()
