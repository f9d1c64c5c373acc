"""Things that lie in a mounted directory and lead to a process or device of the host."""
import os
import socket
import stat
import threading

from case import *

d = os.path.join(place, "src")
os.mkdir(d)
write("src/plain", "plain\n")
os.mkfifo(os.path.join(d, "fifo"))
service = socket.socket(socket.AF_UNIX)
service.bind(os.path.join(d, "sock"))
service.listen()
reached = []


def serve():
    while True:
        try:
            peer, _ = service.accept()
        except OSError:
            return
        reached.append(1)
        peer.sendall(b"HOST")
        peer.close()


threading.Thread(target=serve, daemon=True).start()

SOCK = """
import socket
s = socket.socket(socket.AF_UNIX); s.settimeout(3)
try: s.connect({!r}); print("REACHED", s.recv(10))
except OSError as e: print("NO", e)
"""
FIFO = """
import os
try: print("WROTE", os.write(os.open({!r}, os.O_WRONLY | os.O_NONBLOCK), b"from inside"))
except OSError as e: print("NO", e)
"""


@case
def test_socket():
    path = os.path.join(d, "sock")
    check("outside the service is reached", b"REACHED" in outside(SOCK.format(path)).stdout)
    reached.clear()
    for flag in ("--ro", "--overlay"):
        r = py(SOCK.format(path), flag, d)
        check(f"{flag}: a Unix socket in it leads nowhere", "NO" in r.out, r)
        r = py(SOCK.format("/else/sock"), flag, f"{d}:/else")
        check(f"{flag} elsewhere: the same", "NO" in r.out, r)
    same("and the host's service saw nobody", reached, [])
    p = run("--ro", path, "--", "true")
    check("as a source of its own it is refused, with a reason", p.returncode == 125 and b"socket" in p.stderr, p)


@case
def test_fifo():
    path = os.path.join(d, "fifo")
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    check("outside the reader is reached", b"WROTE" in outside(FIFO.format(path)).stdout)
    same("with what was written", os.read(reader, 100), b"from inside")
    for flag in ("--ro", "--overlay"):
        r = py(FIFO.format(path), flag, d)
        try:
            got = os.read(reader, 100)
        except BlockingIOError:
            got = b""
        check(f"{flag}: a FIFO in it leads nowhere", got == b"" and "Traceback" not in r.err, (got, r))
    p = run("--ro", path, "--", "true")
    check("as a source of its own it is refused", p.returncode == 125 and b"FIFO" in p.stderr, p)
    os.close(reader)


@case
def test_device():
    if not root:
        print("# devices: made by root only")
        return
    path = os.path.join(d, "zero")
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))
    os.chmod(path, 0o666)
    code = f"""
try: print("READ", open({path!r}, "rb").read(4))
except OSError as e: print("NO", e)
"""
    check("outside it is read", b"READ" in outside(code).stdout)
    for flag in ("--ro", "--overlay"):
        check(f"{flag}: a device in it cannot be opened", "NO" in (r := py(code, flag, d)).out, r)
    p = run("--ro", path, "--", "true")
    check("as a source of its own it is refused", p.returncode == 125, p)
    code = """
import os
for path, kind in (("/tmp/d", 0o20666), ("/tmp/b", 0o60666)):
    try: os.mknod(path, kind, os.makedev(1, 5)); print("MADE", open(path, "rb").read(4))
    except OSError as e: print("NO", e)
"""
    check("outside devices can be made", b"MADE" in outside(code.replace("/tmp/d", place + "/d").replace("/tmp/b", place + "/b")).stdout)
    r = py(code)
    check("inside they cannot", r.out.count("NO") == 2, r)


@case
def test_setuid():
    path = write("src/su", "", 0o755)
    with open("/usr/bin/id", "rb") as f:
        write("src/su", f.read())
    os.chmod(path, 0o6755)
    r = box("--ro", d, "--", path, "-u")
    uid = box("--", "id", "-u").out
    same("a setuid program in it gives nothing", r.out, uid)
    check("which is no root", uid.strip() not in ("", "0"), uid)


@case
def test_other_users():
    """root and nobody are in /etc/passwd, whether or not the box's namespace has them: one may not become them."""
    code = """import errno, os
open('/tmp/f', 'w').close()
fd = os.open('/tmp/f', os.O_RDONLY)
def told(f, *args):
    try: f(*args)
    except OSError as e: return errno.errorcode[e.errno]
    return 'done'
me, mine = os.getuid(), os.getgid()
print([told(f, *a) for other in (0, 65534) for f, a in (
    (os.setuid, (other,)), (os.setgid, (other,)), (os.setreuid, (other, other)), (os.setregid, (other, -1)),
    (os.setresuid, (-1, other, -1)), (os.chown, ('/tmp/f', other, -1)), (os.chown, ('/tmp/f', -1, other)),
    (os.fchown, (fd, other, mine)), (os.lchown, ('/tmp/f', me, other)))])
print([told(f, *a) for f, a in ((os.setuid, (me,)), (os.setreuid, (me, -1)), (os.chown, ('/tmp/f', me, mine)), (os.fchown, (fd, -1, -1)))])
"""
    r = py(code)
    same("ids that are not the user's: not permitted", r.out.splitlines()[:1], [str(["EPERM"] * 18)])
    same("its own are", r.out.splitlines()[1:], [str(["done"] * 4)])
    r = py("import os; open('/tmp/f', 'w'); os.chown('/tmp/f', 0, 0); os.setuid(0); print('done')", "--set", "user=root")
    same("root of a box of its own may say its id", r.out, "done\n")


done()
