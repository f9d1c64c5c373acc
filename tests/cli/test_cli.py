"""pale run, explain and doctor from the outside: exit statuses, JSON shapes, errors, help. TAP.

    test_cli.py PALE [sanitized]
"""
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile

pale = os.path.abspath(sys.argv[1])
count = 0
failed = False


def check(what, ok, detail=""):
    global count, failed
    count += 1
    failed |= not ok
    print(f"{'ok' if ok else 'not ok'} {count} - {what}", flush=True)
    if not ok:
        print("\n".join("# " + line for line in str(detail).strip().splitlines()[:20]), flush=True)


def skip(what, need, why):
    if need in os.environ.get("PALE_MUST_WORK", ""):
        return check(what, False, why)
    global count
    count += 1
    print(f"ok {count} - {what} # SKIP {why}")


tmp = tempfile.mkdtemp(prefix="pale-cli.")
env = os.environ | {"PALE_STATE_DIR": f"{tmp}/state", "LC_ALL": "C.UTF-8", "TERM": "xterm"}
env.pop("NO_COLOR", None)
os.chdir(tmp)


def run(*args, program=(pale,), **more):
    more.setdefault("env", env)
    if "input" not in more:
        more.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([*program, *args], capture_output=True, text=True, timeout=60, **more)


def says(what, done, status, *texts):
    seen = done.stdout + done.stderr
    check(what, done.returncode == status and all(t in seen for t in texts), f"{done.returncode}\n{seen}")


def log(*options):
    return [json.loads(line) for line in run("audit", "show", "--json", *options).stdout.splitlines()]


try:
    # ---- the top
    says("pale --version", run("--version"), 0, "pale ")
    says("pale --help names the commands", run("--help"), 0, "run", "explain", "doctor", "audit", "policy")
    says("no command is wrong usage", run(), 2, "pale --help")
    says("an unknown command is wrong usage, with a suggestion", run("explian"), 2, "explain")
    for name in "run", "explain", "doctor":
        done = run(name, "--help")
        says(f"pale {name} --help has examples and exit statuses", done, 0, f"  pale {name}", "xit status")
        check(f"pale {name} --help fits 100 columns", max(map(len, done.stdout.splitlines())) <= 100)

    # ---- run: exit statuses
    says("the command's own status", run("run", "--", "sh", "-c", "exit 3"), 3)
    says("128+n for a signal", run("run", "--", "sh", "-c", "kill -15 $$"), 128 + 15)
    says("124 for a limit, and which", run("run", "--timeout", "200ms", "sleep", "60"), 124, "wall", "200ms")
    says("125 for wrong usage", run("run", "--nonsense"), 125, "--help")
    says("125 for what excludes each other", run("run", "--json", "-t", "true"), 125, "exclude")
    says("125 for a policy that is not there", run("run", "-p", "./none.yaml", "true"), 125, "none.yaml")
    says("125 for a policy that is wrong, with the place", run("run", "-p", "-", "true", input="pale: 1\nlimts: {}\n"), 125, "2:1", "limits")
    says("125 for a source that is not there", run("run", "--ro", "./none", "true"), 125, "none")
    says("127 for no such command", run("run", "no-such-command"), 127, "no-such-command")
    says("127 for no such script", run("run", "./none.py"), 127, "none.py")
    says("... and where it was looked for", run("run", "none.py"), 127, "no such file in", tmp)
    says("a policy of no such name: there are these", run("run", "-p", "nothing", "true"), 125, "compute, analysis")
    with open("plain", "w", encoding="utf-8") as f:
        f.write("echo ran\n")
    says("125 for nothing to run, not an empty run of what is no terminal", run("run"), 125, "nothing to run", "-c CODE")
    done = run("run", "cat", "plain")
    says("a failed command's file that was not in the box: how to show it", done, 1, '"plain" was not in the box', "--ro .")
    check("... and not where it was", "was not in" not in run("run", "--ro", ".", "cat", "plain", "none").stderr)
    check("... nor with --quiet", "was not in" not in run("run", "-q", "cat", "plain").stderr)
    says("126 for what cannot be run", run("run", "./plain"), 126, "plain")
    says("125 where nothing can be logged", run("run", "true", env=env | {"PALE_STATE_DIR": "/proc/none"}), 125, "/proc/none")

    # ---- run: code from everywhere
    says("code by -c, with arguments", run("run", "-c", "import sys; print(sys.argv[1:])", "a", "-b"), 0, "['a', '-b']")
    says("code in another language", run("run", "--lang", "bash", "-c", "echo $BASH_VERSION x"), 0, " x")
    says("code on standard input", run("run", "-", input="print(6 * 7)"), 0, "42")
    with open("script.py", "w", encoding="utf-8") as f:
        f.write("import sys\nprint('script', sys.argv[1:])\n")
    says("a script by its suffix; options after it are its own", run("run", "script.py", "--json"), 0, "script ['--json']")
    says("standard input reaches the command", run("run", "cat", input="through\n"), 0, "through")

    # ---- run: the result
    done = run("run", "--json", "--", "sh", "-c", "echo out; echo err >&2; exit 9")
    result = json.loads(done.stdout)
    check("--json passes the status on", done.returncode == 9 == result["exit_status"], done.stdout)
    check("--json has outcome, output, usage and the run's id",
          result["outcome"] == "exit" and result["stdout"] == "out\n" and result["stderr"] == "err\n"
          and result["usage"]["wall_ms"] >= 0 and len(result["audit_id"]) == 26 and result["blocked"] == [], done.stdout)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/result.md"), encoding="utf-8") as f:
        documented = set(re.findall(r"`([a-z0-9_]+)`", "".join(line.split("|")[1] for line in f if line.startswith("| `"))))
    check("docs/result.md has each key", not set(result) - documented, set(result) - documented)
    for args, status in (("no-such-command",), 127), (("-p", "./none.yaml", "true"), 125), (("./plain",), 126):
        done = run("run", "--json", *args)
        result = json.loads(done.stdout)
        check(f"--json where nothing ran, {status}", done.returncode == status == result["exit_status"] and result["outcome"] == "failed"
              and result["error"]["stage"] and result["error"]["message"] == result["summary"] and result["error"]["message"] in done.stderr, done.stdout)
    says("a limit's figures are rounded", run("run", "--timeout", "1010ms", "sleep", "60"), 124, "wall, 1s of 1010ms")
    os.makedirs("ws", exist_ok=True)
    done = run("run", "--overlay", "ws", "true")
    check("an overlay without changes is not mentioned", (done.returncode, done.stderr) == (0, ""), done.stderr)
    says("one with changes is", run("run", "--overlay", "ws", "touch", f"{tmp}/ws/new"), 0, "pale diff")
    run("run", "--overlay", "ws", "touch", f"{tmp}/ws/.envrc")
    done = run("apply")
    check("what apply holds back is not an attempt of the run's", done.returncode == 1 and
          json.loads(run("audit", "list", "--json").stdout.splitlines()[0])["blocked"] == 0, done.stdout)
    for status, *args in ((125, "run", "--json"), (125, "run", "--json", "-t", "true"), (125, "run", "--memori", "1G", "--json", "x.py"),
                          (125, "run", "--json", "--memory"), (2, "audit", "list", "-n", "x", "--json"), (2, "doctor", "--json", "x"),
                          (2, "policy", "check", "--json"), (2, "explain", "--nothing", "--json"), (125, "audit", "show", "--json", "nope")):
        done = run(*args)
        result = json.loads(done.stdout)
        check(f"{' '.join(args)}: an error as JSON, too", done.returncode == status and result["error"]["message"] in done.stderr
              and set(result["error"]) == {"stage", "message"}, [done.stdout, done.stderr])
        check("and as much as of a run", (set(result) == {"error"}) == (args[0] != "run") and result.get("exit_status", status) == status, result)
    for args in ("run", "nothing-of-that-name", "--json"), ("run", "--nothing", "--", "true", "--json"), ("run",), ("policy", "docs", "--json"):
        check(f"{' '.join(args)}: nothing that was not asked for", run(*args).stdout == "")
    done = run("run", "--json", "-c", "import socket; socket.create_connection(('192.0.2.7', 81))")
    blocked = json.loads(done.stdout)["blocked"]
    check("--json has what was blocked", any(b.get("address") == "192.0.2.7" and b.get("port") == 81 for b in blocked), done.stdout)
    done = run("run", "-c", "import socket; socket.create_connection(('192.0.2.7', 81))")
    says("a line says what was blocked first", done, 1, 'pale: blocked: connect to "192.0.2.7", port 81 (no rule allows it; --allow \'tcp://192.0.2.7:81\' would); see `pale audit show')
    check("and --quiet does not", "blocked" not in run("run", "-q", "-c", "import socket; socket.socket().connect_ex(('192.0.2.7', 81))").stderr)

    # ---- run: the log
    run("run", "-p", "analysis", "--memory", "9GiB", "-c", "print(1)")
    events = log()
    start = events[0]
    check("the log's start has the code, the policy's name and the user",
          start["event"] == "box.start" and start["code"] == "print(1)" and start["policy_name"] == "analysis"
          and start["uid"] == os.getuid() and (start.get("user") or True), start)
    check("what flags add to a policy is in the log", any(e["event"] == "policy.widened" and "memory" in e["what"] for e in events), events)
    run("run", "true")
    check("without -p the policy is compute", log()[0]["policy_name"] == "compute")
    big = "#" + "x" * 9_000_000 + "\nprint('big')\n"
    with open("big.py", "w", encoding="utf-8") as f:
        f.write(big)
    says("a large script runs", run("run", "big.py"), 0, "big")
    check("and is in the log as a whole", log()[0]["code"] == big)
    with open("big.py", "w", encoding="utf-8") as f:
        f.write("#" + "x" * 17_000_000 + "\nprint('big')\n")
    says("one that the log cannot hold does not", run("run", "big.py"), 125, "big.py")

    # ---- explain
    none = env | {"PALE_STATE_DIR": f"{tmp}/never", "HOME": f"{tmp}/nohome"}
    one, two = run("explain", env=none), run("explain", env=none)
    says("explain has each axis and the digest", one, 0, "files\n", "network\n", "kernel\n", "resources\n", "digest\n")
    check("explain says the same twice", one.stdout == two.stdout, one.stdout)
    check("explain makes no state directory", not os.path.exists(f"{tmp}/never"))
    check("explain has no colours in a pipe", "\033" not in one.stdout)
    plan = json.loads(run("explain", "--json", env=none).stdout)
    check("explain --json has the same digest", re.fullmatch("[0-9a-f]{64}", plan["digest"]) and plan["digest"] in one.stdout)
    check("each promise has axis, text and mechanism", len(plan["promises"]) > 15 and all(
        p["axis"] in ("files", "network", "kernel", "resources") and p["what"] and p["mechanism"] for p in plan["promises"]))
    check("explain --json has the steps", any(s["step"] == "proc" for s in plan["steps"]))
    says("explain --steps", run("explain", "--steps"), 0, "steps\n", "/proc")
    check("another policy, another digest", json.loads(run("explain", "--json", "-p", "strict").stdout)["digest"] != plan["digest"])
    check("another command, another digest", json.loads(run("explain", "--json", "echo").stdout)["digest"] != plan["digest"])
    run("run", "echo", "x")
    check("the log has the digest that explain shows",
          log()[0]["plan_digest"] == json.loads(run("explain", "--json", "echo", "x").stdout)["digest"])
    weak = ("--set", "limits.cpus=0.5", "--best-effort", "cpus")
    promised = [p["promise"] for p in json.loads(run("explain", "--json", *weak).stdout)["promises"] if p.get("best_effort")]
    result = json.loads(run("run", "--json", *weak, "--", "true").stdout)
    check("what is weaker than asked is in the result, as in the plan and in the log",
          [b["item"] for b in result["best_effort"]] == promised and
          [e["item"] for e in log() if e["event"] == "best_effort.used"] == promised, result)
    check("a run has a process", result["usage"]["processes_peak"] >= 1, result)
    says("explain tells what is collected", run("explain", "--rw", "o:/out", "--", "true"), 0, "results", "1 writable directory copied")
    says("explain of a wrong policy", run("explain", "-p", "./none.yaml"), 1, "none.yaml")
    says("explain of no such command", run("explain", "no-such-command"), 1, "no-such-command")
    says("explain, wrong usage", run("explain", "--nonsense"), 2)
    if os.getuid() == 0:
        nobody = {"user": 65534, "group": 65534, "extra_groups": [], "cwd": "/"}
        digests = {json.loads(run("explain", "--json", env=none, **nobody).stdout)["digest"] for _ in range(2)}
        check("an ordinary user has another digest, always the same", len(digests) == 1 and plan["digest"] not in digests, digests)

    # ---- doctor
    done = run("doctor")
    works = run("run", "true").returncode == 0
    check("doctor and run agree", (done.returncode == 0) == works, done.stdout)
    says("doctor looks at everything", done, 0 if works else 1, "user namespaces", "proc", "overlay", "seccomp", "Landlock", "cgroup",
         "audit log", "a box", "default policy")
    check("doctor has no colours in a pipe", "\033" not in done.stdout)
    check("doctor fits 100 columns", max(map(len, done.stdout.splitlines())) <= 100)
    report = json.loads(run("doctor", "--json").stdout)
    check("doctor --json", report["enforceable"] == works and all(
        c["state"] in ("ok", "weaker", "missing", "not needed") and c["check"] and c["what"] for c in report["checks"]), report)
    check("what is weaker says what is in force instead", all(len(c["what"]) > 10 for c in report["checks"] if c["state"] == "weaker"))

    def on_terminal(*args, **more):
        main, side = pty.openpty()
        child = subprocess.Popen([pale, *args], stdin=side, stdout=side, stderr=side, env=env | more)
        os.close(side)
        seen = b""
        try:
            while part := os.read(main, 65536):
                seen += part
        except OSError:
            pass
        child.wait()
        os.close(main)
        return seen

    check("doctor has colours on a terminal", b"\033[" in on_terminal("doctor"))
    check("but not with NO_COLOR", b"\033[" not in on_terminal("doctor", NO_COLOR="1"))
    done = run("doctor", env=env | {"PALE_STATE_DIR": "/proc/none"})
    says("doctor: a state directory that cannot be made", done, 1, "audit log         missing", "PALE_STATE_DIR", "cannot be enforced")
    says("doctor, wrong usage", run("doctor", "now"), 2)

    # A namespace in which no further one can be made: what a restricted host is like.
    shut = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
            'echo 0 >/proc/sys/user/max_user_namespaces || exit 77; exec "$0" "$@"', pale)
    done = run("doctor", program=shut)
    if done.returncode == 77 or "unshare" in done.stderr:
        skip("doctor without user namespaces", "userns", done.stderr)
    else:
        says("doctor: user namespaces are off", done, 1, "user namespaces   missing", "max_user_namespaces", "cannot be enforced")
        says("run says the same, and runs nothing", run("run", "echo", "ran", program=shut), 125, "max_user_namespaces")
        check("really nothing", "ran\n" not in run("run", "echo", "ran", program=shut).stdout)

    # ---- a box in a box
    if sys.argv[2:] != ["sanitized"]:  # whose programs do not fit into a box
        inside = ("run", "-q", "--ro", os.path.dirname(pale), "--timeout", "30s")
        says("doctor in a box says which profile the box needs", run(*inside, "--", pale, "doctor"), 1, "kernel: {profile:")
        says("a box in a box, where the policy lets it", run(*inside, "--set", "kernel.profile=nested", "--", pale, "run", "-q", "--set",
             "best_effort=events", "echo", "inner"), 0, "inner\n")
        says("and without its word for what is weaker there, one clear line", run(
            *inside, "--set", "kernel.profile=nested", "--", pale, "run", "echo", "inner"), 125, "best_effort: [events]")
finally:
    os.chdir("/")
    shutil.rmtree(tmp, ignore_errors=True)
print(f"1..{count}")
sys.exit(failed)
