"""pale audit, from the outside. usage: test_cli.py PALE MAKE-RUN TOP. TAP on stdout."""
import fcntl
import json
import os
import pathlib
import pty
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time

pale, make_run, top = sys.argv[1:4]
state = pathlib.Path(tempfile.mkdtemp(prefix="pale-audit-"))
env = {**os.environ, "PALE_STATE_DIR": str(state), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
number = 0


def run(*args, status=0, **more):
    p = subprocess.run([pale, "audit", *args], env=env, capture_output=True, timeout=20, **more)
    assert p.returncode == status, f"{args}: status {p.returncode}, not {status}: {p.stderr!r}"
    for out in (p.stdout, p.stderr):
        bad = [b for b in out if (b < 32 and b != 10) or b == 127]
        assert not bad, f"{args}: control bytes {bad} in {out!r}"
    return p.stdout.decode()


def make(*args):
    return subprocess.run([make_run, *args], env=env, capture_output=True, check=True).stdout.decode().strip()


def rows(*args):
    return [json.loads(line) for line in run("list", "--json", *args).splitlines()]


def log(run_id):
    return state / "runs" / run_id / "audit.jsonl"


def test(what):
    def decorator(function):
        global number
        number += 1
        try:
            function()
            print(f"ok {number} - {what}")
        except Exception as e:  # each failure is told, and the rest still runs
            print(f"not ok {number} - {what}")
            print("# " + f"{type(e).__name__}: {e}".replace("\n", "\n# "))
            test.failed = True
        return function
    return decorator


test.failed = False


@test("docs/audit-log.md is what the table of events says")
def _():
    assert run("events", "--markdown") == (pathlib.Path(top) / "docs/audit-log.md").read_text()
    kinds = [json.loads(line) for line in run("events", "--json").splitlines()]
    assert [k["name"] for k in kinds] == [line.split()[0] for line in run("events").splitlines()]
    assert all(k["stage"] and k["severity"] and k["doc"] for k in kinds)
    run("events", "--json", "--markdown", status=2)


@test("a list of nothing, and a run that is not there")
def _():
    assert run("list") == ""
    assert "no run" in subprocess.run([pale, "audit", "show", "01zz"], env=env, capture_output=True).stderr.decode()


@test("list, show and verify a run; the whole count of blocked attempts")
def _():
    first, second = make("end", "0"), make("end", "3")
    got = rows()
    assert [r["id"] for r in got] == [second, first]
    assert got[0]["status"] == 3 and got[0]["blocked"] == 42 and got[0]["outcome"] == "exit"
    assert "exit 3" in run("list") and "evil\\x1b]0;owned" in run("list")
    shown = run("show", "last")
    assert "network.blocked" in shown and "(status 3)" in shown and "import os" in shown
    assert "box.ready" not in run("show", "@", "--blocked")
    table = [line.split()[:3] for line in run("show", "@", "--blocked").splitlines()]
    assert table[0] == ["times", "what", "target"] and ["40", "more", "network.blocked"] in table, table
    assert "network.blocked" in run("show", "@", "--blocked", "--events")
    assert first in run("show", "@1") and second in run("show", second[:25])
    events = [json.loads(line) for line in run("show", "--json").splitlines()]
    assert [e["seq"] for e in events] == list(range(1, 7))
    assert "6 lines" in run("verify") and run("verify", "--all").count("whole") == 2


def on_terminal(*args, columns=0, **extra):
    parent, child = pty.openpty()
    if columns:
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 25, columns, 0, 0))
    p = subprocess.Popen([pale, "audit", *args], env={**env, **extra}, stdout=child, stderr=child)
    os.close(child)
    out = b""
    try:
        while chunk := os.read(parent, 4096):
            out += chunk
    except OSError:
        pass
    os.close(parent)
    assert p.wait() == 0, out
    return out


@test("a list fits the terminal: the command is cut, an id is shortened if it must and still means one run")
def _():
    make("end", "0"), make("end", "0"), make("changes")
    ids = [r["id"] for r in rows()]
    wide = run("list").splitlines()
    assert [line.split()[0] for line in wide[1:]] == ids and "[changes kept]" in wide[1], wide
    for columns in (80, 100, 115, 116, 200):
        seen = on_terminal("list", columns=columns, TERM="dumb").decode().splitlines()
        assert len(seen) == len(wide) and max(map(len, seen)) <= columns, (columns, seen)
        assert [line.split()[1:3] for line in seen] == [line.split()[1:3] for line in wide], seen
        assert all("pyth" in line for line in seen[1:]) and "kept]" in seen[1], seen
        shown = [line.split()[0] for line in seen[1:]]
        assert all(i.startswith(s) for i, s in zip(ids, shown)), seen
        assert shown == ids if columns > 105 else columns > 80 or all(len(s) < 26 for s in shown), seen
        for i, s in zip(ids, shown):
            assert i in run("verify", s)
    seen = on_terminal("list", columns=20, TERM="dumb").decode()  # no terminal says so: 80
    assert max(map(len, seen.splitlines())) <= 80
    subprocess.run([pale, "discard", "--yes", ids[0]], env=env, capture_output=True)
    run("prune", "--max-size", "1", "--force")
    make("end", "0"), make("end", "3")


@test("on a terminal too, nothing from the log is obeyed; NO_COLOR is")
def _():
    for extra, coloured in (({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False)):
        out = on_terminal("show", "last", **extra)
        assert (b"\x1b[1;31mblocked\x1b[0m" in out) == coloured, out
        rest = out.replace(b"\x1b[1;31m", b"").replace(b"\x1b[0m", b"").replace(b"\x1b[1;33m", b"")
        assert b"\x1b" not in rest and b"\x07" not in rest, rest


@test("filters: outcome, event, time, number")
def _():
    assert len(rows("-n", "1")) == 1 and len(rows("--outcome", "exit")) == 2 and rows("--outcome", "wall") == []
    assert len(rows("--event", "dns.blocked")) == 2 and rows("--event", "limit.hit") == []
    assert len(rows("--since", "1h")) == 2 and rows("--since", "2999-01-01") == []
    run("list", "--event", "no.such", status=2)
    run("list", "--since", "soon", status=2)


@test("a lost run is closed by the next command, a torn line kept")
def _():
    lost = make("lost")
    with open(log(lost), "ab") as f:
        f.write(b'{"seq":6,"half')
    got = rows()[0]
    assert got["id"] == lost and got["outcome"] == "supervisor lost" and got["errors"] == 1, got
    assert (state / "runs" / lost / "torn").read_bytes() == b'{"seq":6,"half'
    assert "whole" in run("verify", lost) and not list((state / "active").iterdir())


@test("a live run is left alone, listed as running, and followed to its end")
def _():
    p = subprocess.Popen([make_run, "live"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    live = p.stdout.readline().decode().strip()
    while log(live).read_bytes().count(b"\n") < 5:
        time.sleep(0.01)
    assert rows()[0]["outcome"] == "running" and "live" in run("verify", live)
    tail = subprocess.Popen([pale, "audit", "tail", "-f", live], env=env, stdout=subprocess.PIPE)
    many = subprocess.Popen([pale, "audit", "tail", "-f"], env=env, stdout=subprocess.PIPE)
    assert b"box.start" in tail.stdout.readline() and live[:10].encode() in many.stdout.readline()
    p.stdin.close()
    assert p.wait() == 0
    out = tail.communicate(timeout=10)[0]
    assert b"box.end" in out and tail.returncode == 0
    line = b""
    while b"box.end" not in line:
        line = many.stdout.readline()
        assert line
    many.terminate()
    many.communicate()


@test("tail -n: so many of the lines before; an end among those that are passed over is one")
def _():
    def told(*args):
        return [json.loads(line)["seq"] for line in run("tail", "--json", *args).splitlines()]

    done = make("end")
    assert told() == told("-n", "10", done) == told("-n", "99", done) == [1, 2, 3, 4, 5, 6]
    assert told("-n", "2", done) == [5, 6] and told("-n", "0", done) == []
    assert told("-f", "-n", "0", done) == [] and told("-f", "-n", "1", done) == [6]
    run("tail", "-n", "some", status=2)
    p = subprocess.Popen([make_run, "live"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    live = p.stdout.readline().decode().strip()
    while log(live).read_bytes().count(b"\n") < 5:
        time.sleep(0.01)
    tails = [subprocess.Popen([pale, "audit", "tail", "-f", "--json", *args], env=env, stdout=subprocess.PIPE)
             for args in (("-n", "1"), ("-n", "1", live))]
    assert [json.loads(t.stdout.readline())["seq"] for t in tails] == [5, 5]
    p.stdin.close()
    assert p.wait() == 0
    assert [json.loads(t.stdout.readline())["event"] for t in tails] == ["box.end", "box.end"]
    assert tails[1].wait(timeout=10) == 0
    tails[0].terminate()
    for t in tails:
        t.communicate()


@test("tampering: exit status 1 and the line; a note kept elsewhere finds a rewritten log")
def _():
    bad = make("end")
    text = log(bad).read_bytes()
    head = json.loads(run("verify", bad, "--json"))["head"]
    assert "as they are when" not in run("verify", bad) and "lines 1 to 6" in run("verify", bad, "--head", head)
    log(bad).write_bytes(text.replace(b'"port":443', b'"port":444'))
    assert "line 3 was changed" in run("verify", bad, status=1)
    report = json.loads(run("verify", bad, "--json", status=1))
    assert report["first_bad_line"] == 3 and report["ok"] is False and report["state"] == "altered"
    log(bad).write_bytes(b"\n".join(text.split(b"\n")[:-2]) + b"\n")
    assert "its end was removed" in run("verify", bad, status=1)
    assert rows()[0]["outcome"] == "altered"
    log(bad).write_bytes(text + b"garbage\n")
    assert "line 7" in run("verify", "--all", status=1)
    assert rows()[0]["damaged"]
    shutil.copytree(state / "runs" / make("end"), state / "runs" / bad, dirs_exist_ok=True)
    assert "belongs to run" in run("verify", bad, status=1)
    log(bad).write_bytes(text)
    (state / "runs" / bad / "head").write_text(f"6 {head}\n")
    run("verify", bad, "--head", "0" * 64, status=1)
    run("verify", bad)


@test("a damaged index is made anew, and so is one of another version")
def _():
    before = rows()
    (state / "index.db").write_bytes(b"not a database at all" * 100)
    assert rows() == before
    with open(state / "index.db", "r+b") as f:
        f.seek(4096)
        f.write(os.urandom(8192))
    assert rows() == before
    run("reindex")
    assert rows() == before
    procs = [subprocess.Popen([pale, "audit", "list"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
             for _ in range(8)]
    assert [p.communicate()[1] for p in procs] == [b""] * 8


@test("export: the lines as they are, and OTLP that is JSON with all events")
def _():
    last = rows()[0]["id"]
    assert run("export", last).encode() == log(last).read_bytes()
    batches = [json.loads(line) for line in run("export", "-f", "otlp").splitlines()]
    assert len(batches) == len(rows())
    records = batches[0]["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    assert len(records) == 6 and records[2]["severityNumber"] == 13
    assert records[0]["timeUnixNano"].isdigit() and len(records[0]["timeUnixNano"]) == 19
    names = {a["key"] for a in records[2]["attributes"]}
    assert {"event.name", "pale.address", "pale.port"} <= names


@test("report: one page, well formed, nothing from the log is markup")
def _():
    from html.parser import HTMLParser
    tags = set()

    class Parser(HTMLParser):
        def handle_starttag(self, tag, attrs):
            tags.add(tag)
            assert not any(k.startswith("on") or k in ("src", "href") for k, _ in attrs), attrs

    page = run("report", "last")
    Parser().feed(page)
    assert "script" not in tags and {"svg", "table", "pre"} <= tags, tags
    assert "&lt;script&gt;" in page and "network.blocked" in page and "Content-Security-Policy" in page
    run("report", "-o", str(state / "page.html"))
    assert (state / "page.html").read_text() == page
    (state / "page.html").unlink()


@test("prune: oldest first, never a live run, never unapplied changes unless forced")
def _():
    kept = make("changes")
    p = subprocess.Popen([make_run, "live"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    live = p.stdout.readline().decode().strip()
    assert rows()[1]["unapplied"] is True
    before = len(rows())
    would = run("prune", "--max-size", "1", "--dry-run")
    assert "would remove" in would and str(state) in would and len(rows()) == before
    would = json.loads(run("prune", "--max-size", "1", "--dry-run", "--json"))
    assert would["dry_run"] is True and would["path"] == str(state) and len(would["removed"]) == would["runs"] == before - 2
    assert sum(r["bytes"] for r in would["removed"]) == would["bytes"] and would["unapplied"] == 1, would
    run("prune", "--older-than", "1d")
    assert len(rows()) == before
    gone = [r["id"] for r in reversed(rows())]
    done = json.loads(run("prune", "--max-size", "1", "--json"))
    assert [r["id"] for r in rows()] == [live, kept]
    assert [r["id"] for r in done["removed"]] == gone[:-2] and done["dry_run"] is False and done["kept_runs"] == 2, done
    run("prune", "--max-size", "1", "--force")
    assert [r["id"] for r in rows()] == [live]
    p.stdin.close()
    p.wait()
    run("prune", "--max-size", "1")
    assert rows() == [] and not list((state / "runs").iterdir())


@test("a state directory that others may write to, or that is a link, is refused")
def _():
    for name, change in (("open", lambda d: d.chmod(0o777)), ("link", None)):
        d = state / name
        if change:
            d.mkdir()
            change(d)
        else:
            d.symlink_to(state)
        p = subprocess.run([pale, "audit", "list"], env={**env, "PALE_STATE_DIR": str(d)}, capture_output=True)
        assert p.returncode == 125 and b"pale: audit: " in p.stderr, p


shutil.rmtree(state)
print(f"1..{number}")
sys.exit(test.failed)
