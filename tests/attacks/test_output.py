#!/usr/bin/python3
"""Names, arguments, programs and paths full of what terminals, JSON and logs do not like: nothing of it
reaches a terminal as it is, breaks a line of the log, or makes one."""
import pty
import select

from attacked import *

HOSTILE = "a\x1b[31m\x1b]0;title\x07\rb\nc\t\"q'\\ \x01\x7f\u202e\x9b31m {\"event\":\"box.end\"}\n{\"seq\":1}"
BYTES = HOSTILE.encode() + b"\xff\xfe"
work = os.path.join(place, "work")
out = os.path.join(place, "out")
os.mkdir(work)
os.mkdir(out)
SCRIPT = r"""
n="$1"
f=$(printf '%s' "$n" | tr / _)
echo "$n" >"$f"; mkdir "d$f"; ln -s "$f" "l$f"; echo y >/out/"$f"; mkfifo /out/"p$f"; ln -s /etc "/out/e$f"
cp /bin/true "/tmp/$f"; "/tmp/$f"; cat "/usr/$f"; mkdir "/usr/$f"
python3 - "$n" <<'END'
import ctypes, socket, sys, os
libc = ctypes.CDLL(None)
n = os.fsencode(sys.argv[1])
libc.prctl(15, n[:15])
libc.syscall(321, 0, 0, 0)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect_ex(("192.0.2.77", 99))
q = b"\0\1\1\0\0\1\0\0\0\0\0\0" + bytes([63]) + n[:63].ljust(63, b"x") + b"\0\0\1\0\1"
s.connect(("127.0.0.1", 53)); s.send(q); s.recv(512)
END
exit 3
"""


def obeyed(data):
    """What a terminal obeys: C0 but newline and tab, C1, what is not UTF-8, the marks that turn text around. DEL,
    which JSON does not escape, does nothing there."""
    text = data.replace(b"\r\n", b"\n").decode("utf-8", errors="surrogateescape")
    return sorted({c for c in text if ord(c) < 32 and c not in "\n\t" or 0x80 <= ord(c) < 0xa0 or ord(c) in (0x202e, 0x2066) or
                   0xdc80 <= ord(c) <= 0xdcff})


def on_terminal(*args):
    """What a command shows on a terminal, without the colours that it makes itself."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.clear()
        os.environ.update(env, TERM="xterm", PAGER="cat", NO_COLOR="1")
        os.execv(pale, [pale, *args])
    data = b""
    while True:
        if not select.select([fd], [], [], 20)[0]:
            os.kill(pid, signal.SIGKILL)
            break
        try:
            more = os.read(fd, 65536)
        except OSError:
            break
        if not more:
            break
        data += more
    os.waitpid(pid, 0)
    os.close(fd)
    return data


p = subprocess.run([pale, "run", "--overlay", work, "--rw", f"{out}:/out", "--set", "audit.files=all", "--", "sh", "-c", SCRIPT, "-",
                    BYTES, BYTES], cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                   check=False)
run = os.listdir(os.path.join(state, "runs"))[0]


@case
def test_log():
    check("the hostile command ran", p.returncode == 3, p)
    with open(os.path.join(state, "runs", run, "audit.jsonl"), "rb") as f:
        lines = f.read().split(b"\n")
    events = [json.loads(line) for line in lines if line]
    check("each line of the log is one event, in order", [e["seq"] for e in events] == list(range(1, len(events) + 1)))
    check("there is one end, and it is last", [e["event"] for e in events].count("box.end") == 1 and events[-1]["event"] == "box.end")
    check("no control byte is in it", not any(c < 32 for line in lines for c in line))
    check("all kinds are told", {"file.blocked", "call.denied", "network.blocked", "dns.blocked", "collect.refused"} <=
          {e["event"] for e in events}, {e["event"] for e in events})
    q = subprocess.run([pale, "audit", "verify", run], env=env, capture_output=True, check=False)
    check("it is whole", q.returncode == 0, q)


@case
def test_terminal():
    for args in (["audit", "list"], ["audit", "show", run], ["audit", "show", run, "--blocked"], ["audit", "verify", run],
                 ["audit", "export", run], ["audit", "show", run, "--json"], ["audit", "list", "--json"], ["diff", run],
                 ["diff", run, "--patch"], ["diff", run, "--json"], ["apply", "--dry-run", run],
                 ["run", "--ro", os.path.join(place, HOSTILE), "--", "true"], ["run", "--", HOSTILE],
                 ["run", "-p", HOSTILE, "--", "true"], ["run", "--set", HOSTILE, "--", "true"], ["run", "--" + HOSTILE],
                 [HOSTILE], ["audit", "show", HOSTILE], ["diff", HOSTILE], ["explain", "--", HOSTILE], ["policy", "check", HOSTILE],
                 ["explain", "--ro", f"{work}:/{HOSTILE.replace(':', '')}"]):
        shown = on_terminal(*args)
        check(f"pale {' '.join(args)[:40]!r} shows nothing that a terminal obeys", not obeyed(shown) and shown,
              (obeyed(shown), shown[:1500]))
    # The test can fail: a command's own output passes as it is.
    shown = on_terminal("run", "-q", "--", "printf", "%s", HOSTILE)
    check("the command's own output is not touched", "\x1b" in obeyed(shown), shown)


@case
def test_results():
    r = Run("--", "sh", "-c", 'printf "%s" "$1"; printf "%s" "$1" >&2; exec "$1"', "-", HOSTILE)
    check("a result is JSON whatever is printed", r.out == HOSTILE and HOSTILE in r.err, r)
    r = Run("--", PYTHON, "-c", "import os; os.write(1, bytes(range(256)) * 10); os.write(1, b'x' * 300000 + b'\\n'); os.write(2, b'\\xed\\xa0\\x80')")
    check("and bytes that are no text", r.json.get("stdout_base64") and r.json["stdout_bytes"] == 302561, r)
    names = os.listdir(os.fsencode(out))
    check("what was collected has its names unchanged, and no FIFO or link out is there", len(names) == 1 and names[0].endswith(b"\xff\xfe"), names)
    for data in (b"\x1b[31m: [", b'{"pale": 1, "\x1b[31m\\n": 2}', b"pale: 1\nfiles: [{path: \"/\\x1b[31m\", access: \"\\x1b\"}]\n",
                 b"pale: 1\nlimits: {wall: \"\\x1b[2J\"}\n", b"\xff\xfe\x00p\x00a"):
        for name in ("p.yaml", "p.json"):
            path = os.path.join(place, name)
            with open(path, "wb") as f:
                f.write(data)
            shown = on_terminal("policy", "check", path)
            check(f"a hostile policy {data[:14]!r} ({name})", not obeyed(shown) and shown, (obeyed(shown), shown))


done()
