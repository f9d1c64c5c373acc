"""`pale policy` and the policy flags, through the command line; the generated files; the schema. TAP.

    test_cli.py PALE SOURCE
"""
import json
import os
import re
import subprocess
import sys
import tempfile

pale, source = map(os.path.abspath, sys.argv[1:])
# By their names below policies/, those in presets/ included.
policies = sorted(os.path.relpath(os.path.join(d, n), os.path.join(source, "policies"))
                  for d, _, names in os.walk(os.path.join(source, "policies")) for n in names)
count = 0


def check(what, ok, detail=""):
    global count
    count += 1
    print(f"{'ok' if ok else 'not ok'} {count} - {what}")
    if not ok and detail:
        print("\n".join("# " + line for line in str(detail).strip().splitlines()[:20]))


def run(*args, cwd=None, env=None, data=None):
    return subprocess.run([pale, *args], capture_output=True, cwd=cwd, input=data, timeout=60,
                          env={**os.environ, **(env or {})})


def same(what, got, want):
    check(what, got == want, f"got  {got!r}\nwant {want!r}")


def read(name):
    with open(os.path.join(source, name), "rb") as f:
        return f.read()


def shown(*flags, cwd, env=None):
    done = run("policy", "show", "--json", *flags, cwd=cwd, env=env)
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr.decode()


# The committed files are the generated ones.
for name, command in (("schema/policy.schema.json", "schema"), ("docs/policy.md", "docs")):
    check(f"{name} is what `pale policy {command}` prints", read(name) == run("policy", command).stdout,
          f"run: pale policy {command} > {name}")

with tempfile.TemporaryDirectory(prefix="pale-policy.") as tmp:
    tmp = os.path.realpath(tmp)
    path = os.path.join(tmp, "policy.yaml")

    # Every example of the documentation is a policy.
    examples = re.findall(r"^```yaml\n(.*?)^```$", read("docs/policy.md").decode(), re.M | re.S)
    bad = []
    for example in examples:
        with open(path, "w") as f:
            f.write(example)
        done = run("policy", "check", path)
        if done.returncode != 0:
            bad.append(done.stderr.decode())
    check(f"the {len(examples)} examples of docs/policy.md load", len(examples) > 5 and not bad, "".join(bad))
    os.unlink(path)

    # init: writes once, never over a file.
    done = run("policy", "init", cwd=tmp)
    same("init writes policy.yaml", (done.returncode, done.stdout), (0, b"policy.yaml\n"))
    with open(path) as f:
        starter = f.read()
    same("the starter policy is the default policy", shown("-p", path, cwd=tmp), shown(cwd=tmp))
    with open(path, "w") as f:
        f.write("mine")
    done = run("policy", "init", "analysis", cwd=tmp)
    with open(path) as f:
        same("init does not write over a file", (done.returncode, f.read()), (1, "mine"))
    os.symlink("target", os.path.join(tmp, "link"))
    done = run("policy", "init", "-o", "link", cwd=tmp)
    same("init does not write through a link", (done.returncode, os.path.exists(os.path.join(tmp, "target"))), (1, False))
    done = run("policy", "init", "analysis", "--force", cwd=tmp)
    with open(path, "rb") as f:
        same("init --force does, with a shipped policy", (done.returncode, f.read()), (0, read("policies/analysis.yaml")))
    done = run("policy", "init", "-o", "-", "strict")
    same("init -o - prints it", done.stdout, read("policies/strict.yaml"))
    done = run("policy", "init", "--json", "-o", "b\xe4d\n.yaml".encode("latin-1"), cwd=tmp)
    same("init --json has the name, which may be no UTF-8", (done.returncode, done.stdout), (0, b'{"file":"b\\\\xe4d\\\\n.yaml"}\n'))
    check("init --json and -o - exclude each other", run("policy", "init", "--json", "-o", "-").returncode == 2)
    done = run("policy", "init", "nosuch", cwd=tmp)
    check("init of an unknown name says what there is", done.returncode == 1 and b"compute, analysis" in done.stderr, done.stderr)
    # All keys switched on: what the starter offers is valid.
    with open(path, "w") as f:
        f.write(re.sub(r"^#((?:  ){0,2}[a-z-])", r"\1", starter, flags=re.M))
    done = run("policy", "check", path)
    check("the starter policy with every # deleted loads", done.returncode == 0, done.stderr.decode())
    everything = shown("-p", path, cwd=tmp)
    check("... and sets what it says", isinstance(everything, dict) and len(everything["files"]) == 4 and everything["env"]["SEED"] == "1", everything)
    all_on = path

    # check
    with open(os.path.join(tmp, "bad.yaml"), "w") as f:
        f.write("pale: 1\nlimits:\n  wal: 1s\n  memory: 5 parsecs\n")
    done = run("policy", "check", "bad.yaml", "strict", cwd=tmp)
    same("check tells each error with its place", (done.returncode, done.stdout.decode(), done.stderr.decode().splitlines()), (
        1, "strict: a valid policy\n",
        ['bad.yaml:3:3: there is no key "wal" in limits: did you mean wall?',
         'bad.yaml:4:11: limits.memory: expected a size such as 64MiB, 1.5GiB or 500kB, not "5 parsecs"']))
    done = run("policy", "check", "--json", "bad.yaml", "strict", "none.yaml", cwd=tmp)
    report = json.loads(done.stdout)
    same("check --json", (done.returncode, [r["valid"] for r in report], len(report[0]["errors"])), (1, [False, True, False], 2))
    same("check --json has places", report[0]["errors"][0],
         {"line": 3, "column": 3, "message": 'there is no key "wal" in limits: did you mean wall?'})
    done = run("policy", "check", "--json", "-", cwd=tmp, data=b"pale: 1\nx: x\n")
    same("... of standard input, too", json.loads(done.stdout)[0]["errors"][0]["line"], 2)
    # What is not on this host
    with open(os.path.join(tmp, "elsewhere.yaml"), "w") as f:
        f.write("pale: 1\nfiles:\n  - {path: /a, from: ./nowhere, access: read}\n  - {path: /b, from: ., access: read}\n"
                "  - {path: /c, from: ./bad.yaml, access: overlay}\n")
    done = run("policy", "check", "elsewhere.yaml", cwd=tmp)
    lines = done.stderr.decode().splitlines()
    check("a source that is not there is a warning, with its place", (done.returncode, done.stdout) == (0, b"elsewhere.yaml: a valid policy\n")
          and len(lines) == 2 and lines[0].startswith("elsewhere.yaml:3:5: warning: ") and "nowhere" in lines[0] and "No such file" in lines[0]
          and lines[1].startswith("elsewhere.yaml:5:5: warning: ") and "is a file" in lines[1], done.stderr)
    done = run("policy", "check", "--strict", "elsewhere.yaml", cwd=tmp)
    check("--strict: an error", (done.returncode, done.stdout) == (1, b"") and b"warning" not in done.stderr
          and done.stderr.startswith(b"elsewhere.yaml:3:5: "), done.stderr)
    check("as pale run says it", done.stderr.splitlines()[0] in run("run", "-p", "elsewhere.yaml", "true", cwd=tmp).stderr, done.stderr)
    for strict in (), ("--strict",):
        done = run("policy", "check", "--json", *strict, "elsewhere.yaml", cwd=tmp)
        report = json.loads(done.stdout)[0]
        same(f"check --json {' '.join(strict)}", (done.returncode, report["valid"], len(report["errors"]), [w["line"] for w in report["warnings"]]),
             (1, False, 2, []) if strict else (0, True, 0, [3, 5]))
    done = run("policy", "init", "x.yaml", cwd=tmp)
    check("init of what looks like a file says how to name it", done.returncode == 1 and b"-o" in done.stderr, done.stderr)
    done = run("policy", "check", "-", cwd=tmp, data=b"pale: 1\nuser: x\n")
    same("check of standard input", done.returncode, 0)
    done = run("policy", "check", tmp)
    check("a directory is no policy", done.returncode == 1 and b"Is a directory" in done.stderr, done.stderr)
    done = run("policy", "check", "/dev/zero")
    check("an endless file is refused", done.returncode == 1 and b"longer than" in done.stderr, done.stderr)

    # Flags
    def files(*flags):
        got = shown(*flags, cwd=tmp)
        return got["files"] if isinstance(got, dict) else got

    same("--ro PATH", files("--ro", "a"), [{"path": f"{tmp}/a", "from": f"{tmp}/a", "access": "read"}])
    same("--ro PATH:TARGET", files("--ro", "a:/data/a"), [{"path": "/data/a", "from": f"{tmp}/a", "access": "read"}])
    same("--ro with a colon in the path", files("--ro", "a:b"), [{"path": f"{tmp}/a:b", "from": f"{tmp}/a:b", "access": "read"}])
    same("--ro with a path like a target", files("--ro", "a:/b:"), [{"path": f"{tmp}/a:/b", "from": f"{tmp}/a:/b", "access": "read"}])
    same("--ro splits at the last target", files("--ro", "a:/b:/c"), [{"path": "/c", "from": f"{tmp}/a:/b", "access": "read"}])
    same("--rw PATH", files("--rw", "out"), [{"path": f"{tmp}/out", "collect": f"{tmp}/out", "access": "write"}])
    same("--rw PATH:SIZE", files("--rw", "out:1MiB"), [{"path": f"{tmp}/out", "collect": f"{tmp}/out", "access": "write", "size": "1MiB"}])
    same("--rw PATH:TARGET:SIZE", files("--rw", "o:/out:1MiB"), [{"path": "/out", "collect": f"{tmp}/o", "access": "write", "size": "1MiB"}])
    same("--rw with a path like a size", files("--rw", "o:5:"), [{"path": f"{tmp}/o:5", "collect": f"{tmp}/o:5", "access": "write"}])
    same("--overlay and --hide", files("--overlay", ".", "--hide", ".env"), [
        {"path": tmp, "from": tmp, "access": "overlay"}, {"path": f"{tmp}/.env", "access": "hide"}])
    # Network rules and secrets
    def network(*flags, env=None):
        got = shown(*flags, cwd=tmp, env=env)
        return {k: v for k, v in got["network"].items() if v and k != "connections"} if isinstance(got, dict) else got

    def rule(host, port=443, protocol="tls", **more):
        return {"host": host, "port": port, "protocol": [protocol], **more}

    for text, want in (
            ("api.example.com", rule("api.example.com")),
            ("API.example.com.:443", rule("api.example.com")),
            ("*.example.org:80", rule("*.example.org", 80, "http")),
            ("https://api.example.com/", rule("api.example.com")),
            ("https://api.example.com/v1/**", rule("api.example.com", paths=["/v1/**"], intercept=True)),
            ("api.example.com:443/v1/*", rule("api.example.com", paths=["/v1/*"], intercept=True)),
            ("get,HEAD api.example.com/v1", rule("api.example.com", methods=["GET", "HEAD"], paths=["/v1"], intercept=True)),
            ("tcp://db.example.com:5432", rule("db.example.com", 5432, "tcp")),
            ("ssh://git.example.com", rule("git.example.com", 22, "tcp")),
            ("udp://dns.example.com:53-54", rule("dns.example.com", "53-54", "udp")),
            ("http://192.0.2.1:80/x", {"address": "192.0.2.1", "port": 80, "protocol": ["http"], "paths": ["/x"]}),
            ("10.1.0.0/16", {"address": "10.1.0.0/16", "port": 443, "protocol": ["tls"]}),
            ("10.1.0.0/16:22", {"address": "10.1.0.0/16", "port": 22, "protocol": ["tcp"]}),
            ("http://10.1.0.1/v1", {"address": "10.1.0.1", "port": 80, "protocol": ["http"], "paths": ["/v1"]}),
            ("http://api.test=127.0.0.1:8000", rule("api.test", 8000, "http") | {"address": "127.0.0.1"}),
            ("GET wiki.example=10.0.0.0/8:443/a", rule("wiki.example", methods=["GET"], paths=["/a"], intercept=True) | {"address": "10.0.0.0/8"}),
            ("wiki.example=[fd00::/8]", rule("wiki.example") | {"address": "fd00::/8"}),
            ("[2001:db8::/32]:443", {"address": "2001:db8::/32", "port": 443, "protocol": ["tls"]})):
        same(f"--allow {text}", network("--allow", text), {"allow": [want]})
    same("--deny HOST", network("--deny", "a.example"), {"deny": [{"host": "a.example", "port": "1-65535", "protocol": ["tls", "http", "tcp", "udp"]}]})
    same("--allow preset:NAME with methods", [r["methods"] for r in network("--allow", "GET preset:pypi")["allow"]], [["GET"], ["GET"]])
    for text, message in (
            ("a.example:8443", "--allow: port 8443 needs `protocol`"), ("a.example:8443", "tls://a.example:8443"),
            ("2001:db8::1", "in brackets"), ("[2001:db8::1", "`]` is missing"), ("[a.example]", "expected an address"),
            ("ftp://a.example", "expected one of tls, http, tcp, udp"), ("a.example:https", "network.allow[].port: expected"),
            ("GET,BAD(METHOD a.example", "expected an HTTP method"), ("*", "no rule for all hosts"), ("", "expected a host name"),
            ("/x", "expected a host name"), ("a.example=b.example", "expected an address or a range"),
            ("a.example=", "expected an address or a range"), ("=127.0.0.1", "expected a host name"), ("preset:nosuch", "there is no preset"), ("2130706433", "expected a host name"),
            ("a.example/x?y", "network.allow[].paths: expected"), ("a" * 5000, "too long"), ("x." * 128, "too long")):
        got = network("--allow", text)
        check(f"--allow {text[:40]!r} is refused: {message}", isinstance(got, str) and message in got, got)
    same("--secret NAME@HOST", network("--secret", "K@a.example"),
         {"secrets": [{"env": "K", "value_from": "env:K", "hosts": ["a.example"], "header": "authorization"}]})
    same("--secret with all of it", network("--secret", "K=file:/x@y@a.example,b.example,query=key"),
         {"secrets": [{"env": "K", "value_from": "file:/x@y", "hosts": ["a.example", "b.example"], "query": "key"}]})
    same("--secret in a file, for basic authentication", network("--secret", "/etc/k=command:pass show k@a.example,basic"),
         {"secrets": [{"file": "/etc/k", "value_from": "command:pass show k", "hosts": ["a.example"], "basic": True}]})
    got = network("--secret", "K@query=k")
    check("--secret without a host is refused", isinstance(got, str) and "`hosts` is missing" in got, got)
    for text in ("K=hunter2@a.example", "K=hunter2", "K=env:A=hunter2@a.example", "hunter2!@a.example"):
        got = network("--secret", text)
        check(f"--secret {text} is refused", isinstance(got, str), got)
        check("... and the message does not show what may be the secret", "hunter2" not in got or text.startswith("hunter2"), got)
    # A secret's value is read by who runs, not by who shows.
    got = run("policy", "show", "--json", "--secret", "K@a.example", env={"K": "hunter2"})
    check("policy show has the source of a secret, not its value", b"env:K" in got.stdout and b"hunter2" not in got.stdout, got.stdout)

    # What the plan says of the rules: a line each, and of secrets their source.
    flags = ["--allow", "GET a.example/x", "--allow", "preset:pypi", "--deny", "b.example", "--secret", "K@a.example"]
    done = run("explain", "--json", *flags, "--", "true", env={"K": "hunter2"})
    if done.returncode != 0 and b"needs nftables" in done.stderr and "egress" not in os.environ.get("PALE_MUST_WORK", ""):
        count += 1
        print(f"ok {count} - explain with a network # SKIP {done.stderr.decode()!r}")
    else:
        plan = json.loads(done.stdout) if done.returncode == 0 else {"promises": [], "network": {}, "error": done.stderr}
        lines = [(p["promise"], p["what"]) for p in plan["promises"] if p["promise"] in ("allow", "deny", "secret")]
        same("explain has a line a rule", lines, [
            ("secret", "K to a.example, header authorization, from env:K"), ("allow", "tls a.example:443 GET /x"),
            ("allow", "tls pypi.org:443 (preset pypi)"), ("allow", "tls files.pythonhosted.org:443 (preset pypi)"), ("deny", "b.example")])
        same("... and the rules themselves for programs", [len(plan["network"].get(k, [])) for k in ("allow", "deny", "secrets")], [3, 1, 1])
        text = run("explain", *flags, "--", "true", env={"K": "hunter2"}).stdout
        check("... and no secret's value anywhere", b"env:K" in text and b"hunter2" not in text + done.stdout, text)
        same("the same policy makes the same plan, a wider one another", [
            len({json.dumps(json.loads(run("explain", "--json", *f, "--", "true").stdout)) for f in fs}) for fs in (
                (flags, flags), (flags, flags + ["--allow", "c.example"]))], [1, 2])
    done = run("explain", "--profile", "strict", *flags, "--", "true")
    check("rules and a profile without sockets exclude each other", done.returncode != 0 and b"profile: strict" in done.stderr, done.stderr)
    done = run("explain", "--secret", "K@a.example", "--", "true")
    check("a secret for a host that no rule allows is refused", done.returncode != 0 and b"no rule of network.allow" in done.stderr, done.stderr)

    # Presets: the shipped ones, and files that take their place.
    names = sorted(n[:-len(".yaml")] for n in os.listdir(os.path.join(source, "policies", "presets")))
    none = {"XDG_CONFIG_HOME": os.path.join(tmp, "config")}
    done = run("policy", "presets", "--json", env=none)
    same("policy presets --json lists the shipped ones", [p["name"] for p in json.loads(done.stdout)], names)
    check("... all of which are good", all(p["hosts"] and not p["file"] and "error" not in p for p in json.loads(done.stdout)), done.stdout)
    done = run("policy", "presets", env=none)
    same("policy presets lists them", [line.split()[0] for line in done.stdout.decode().splitlines() if line[0] != " "], names)
    for name in names:
        done = run("policy", "presets", name, env=none)
        same(f"policy presets {name} prints its file", done.stdout, read(f"policies/presets/{name}.yaml"))
    os.makedirs(os.path.join(tmp, "config/pale/presets"))
    mine = os.path.join(tmp, "config/pale/presets/pypi.yaml")

    def preset(text):
        with open(mine, "w") as f:
            f.write(text)
        os.chmod(mine, 0o644)

    preset("pale: 1\nnetwork: {allow: [{host: mirror.example}]}\n")
    same("a preset of the user's takes the place", [r["host"] for r in network("--allow", "preset:pypi", env=none)["allow"]], ["mirror.example"])
    same("... also in the list", [p["file"] for p in json.loads(run("policy", "presets", "--json", env=none).stdout) if p["file"]], [mine])
    os.chmod(mine, 0o666)
    got = network("--allow", "preset:pypi", env=none)
    check("one that others can write to is refused", isinstance(got, str) and "somebody else" in got, got)
    for text, message in (("pale: 1\nfiles: [{path: /srv}]\n", "a preset says network.allow, and nothing else"),
                          ("pale: 1\nnetwork: {deny: [{host: a.example}]}\n", "network.deny: a preset says network.allow"),
                          ("pale: 1\nnetwork: {exempt: a.example}\n", "a preset says network.allow"),
                          ("pale: 1\nnetwork: {allow: [{preset: pypi}]}\n", "a preset cannot be made of presets"),
                          ("pale: 1\nnetwork: {allow: [{host: 'a b'}]}\n", "pypi.yaml:2:26: network.allow[].host")):
        preset(text)
        got = network("--allow", "preset:pypi", env=none)
        check(f"a preset with another part is refused: {message}", isinstance(got, str) and message in got, got)
    done = run("policy", "presets", "--json", env=none)
    check("a broken preset is in the list, with its error", any("error" in p for p in json.loads(done.stdout)), done.stdout)
    preset("pale: 1\nnetwork: {allow: [{host: mirror.example}]} # \x1b[31m\n")
    done = run("policy", "presets", "pypi", env=none)
    check("nothing in a preset's text is obeyed by a terminal", b"\x1b" not in done.stdout, done.stdout)
    with open(os.path.join(tmp, "own.yaml"), "w") as f:
        f.write("pale: 1\nnetwork: {allow: [{host: own.example}]}\n")
    with open(os.path.join(tmp, "uses.yaml"), "w") as f:
        f.write("pale: 1\nnetwork: {allow: [{preset: ./own.yaml, rate: 1MiB}]}\n")
    got = shown("-p", os.path.join(tmp, "uses.yaml"), cwd="/")
    same("a preset by its path, which counts from the policy's directory", got["network"]["allow"],
         [rule("own.example", preset="./own.yaml", rate="1MiB")])

    same("a name that is not UTF-8", files("--ro", b"\xff\xfe:/x"), [
        {"path": "/x", "from": {"hex": (tmp.encode() + b"/\xff\xfe").hex()}, "access": "read"}])
    check("--ro of a reserved place", "cannot be a path" in files("--ro", "a:/usr/x"), files("--ro", "a:/usr/x"))
    for size in ("1", "0"):
        check(f"--rw with too little: {size}", "too little" in files("--rw", f"o:{size}"), files("--rw", f"o:{size}"))

    done = subprocess.run(["bash", "-c", '"$1" policy show -p <(printf "pale: 1\\nfiles: [{from: x}]\\n")', "bash", pale],
                          capture_output=True, cwd=tmp)
    check("a policy from a pipe counts paths from the working directory", f"{tmp}/x".encode() in done.stdout, done.stderr)

    got = shown("-p", "strict", "--timeout", "5", "--cpu-time", "2m", "--cpus", ".5", cwd=tmp)
    check("a flag's error names the flag", isinstance(got, str) and "--cpus: limits.cpus: expected a number" in got, got)
    got = shown("--memory", "1GiB", "-p", "strict", "--timeout", "5", "--cpu-time", "2m", "--cpus", "0.5", "--processes", "9",
                "--disk", "5MiB", "--output", "2KiB", "--profile", "nested", "--set", "limits.inodes=999", "--best-effort",
                "memory,cpus", "--best-effort", "events", "--env", "A=b=c", "--env", "COPIED", cwd=tmp, env={"COPIED": "here"})
    limits = got["limits"]
    same("flags come after files", (limits["memory"], limits["wall"], limits["cpu"], limits["cpus"], limits["processes"], limits["disk"],
                                    limits["output"], limits["inodes"], limits["file_size"], got["kernel"]["profile"], sorted(got["best_effort"]), got["env"]),
         ("1GiB", "5s", "2m", "0.5", 9, "5MiB", "2KiB", 999, "16MiB", "nested", ["cpus", "events", "memory"],
          {"A": "b=c", "COPIED": "here"}))
    got = shown("--set", "session.idle=never", "--set", "session.lifetime=never", cwd=tmp)
    same("a time that may be without end", (got["session"]["idle"], got["session"]["lifetime"]), ("never", "never"))
    got = shown("--set", "session.idle=unlimited", cwd=tmp)
    check("... is said so", isinstance(got, str) and "did you mean never?" in got, got)
    got = shown("--set", "limits.wall=never", cwd=tmp)
    check("... others have an end", isinstance(got, str) and "limits.wall: expected a time" in got, got)
    got = shown("--env", "NO_SUCH_VARIABLE_HERE", cwd=tmp)
    check("--env of a variable that is not there", isinstance(got, str) and "no such variable" in got, got)
    got = shown("--set", "limits.memory", cwd=tmp)
    check("--set without =", isinstance(got, str) and "expected KEY=VALUE" in got, got)
    # A policy in the working directory is not loaded by itself.
    for name in ("policy.yaml", "pale.yaml", ".pale.yaml"):
        with open(os.path.join(tmp, name), "w") as f:
            f.write("pale: 1\nlimits: {memory: 9GiB}\n")
    same("a policy that lies about is not loaded", shown(cwd=tmp)["limits"]["memory"], "512MiB")
    check("a policy's paths count from its directory", shown("-p", os.path.join(tmp, "sub.yaml"), cwd="/") if not
          open(os.path.join(tmp, "sub.yaml"), "w").write("pale: 1\nfiles: [{path: ., access: overlay}]\n") else
          shown("-p", os.path.join(tmp, "sub.yaml"), cwd="/")["files"][0]["path"] == tmp)
    # YAML and JSON of the same policy load to the same.
    for form, flag in (("yaml", []), ("json", ["--json"])):
        done = run("policy", "show", *flag, "-p", "workspace", "--env", "X=no", "--ro", b"\xff:/x", cwd=tmp)
        with open(os.path.join(tmp, f"shown.{form}"), "wb") as f:
            f.write(done.stdout)
        same(f"the shown {form} loads to the same policy", shown("-p", os.path.join(tmp, f"shown.{form}"), cwd="/"),
             json.loads(run("policy", "show", "--json", "-p", "workspace", "--env", "X=no", "--ro", b"\xff:/x", cwd=tmp).stdout))

    # The schema says the same as the loader, as far as a schema can.
    with open(all_on, "w") as f:
        f.write(re.sub(r"^#((?:  ){0,2}[a-z-])", r"\1", starter, flags=re.M))
    try:
        import jsonschema
        import yaml
    except ImportError as e:
        if "jsonschema" in os.environ.get("PALE_MUST_WORK", ""):
            check("a JSON Schema validator", False, e)
        else:
            count += 1
            print(f"ok {count} - the schema # SKIP {e}: install python3-jsonschema and python3-yaml")
    else:
        schema = json.loads(read("schema/policy.schema.json"))
        # Draft 2020-12 came with jsonschema 4; the keywords used here mean the same before.
        validator_class = getattr(jsonschema, "Draft202012Validator", jsonschema.Draft7Validator)
        validator_class.check_schema(schema)
        validator = validator_class(schema)
        for name in policies:
            errors = [e.message for e in validator.iter_errors(yaml.safe_load(read("policies/" + name)))]
            check(f"the schema takes policies/{name}", not errors, "\n".join(errors))
        with open(all_on) as f:
            errors = [e.message for e in validator.iter_errors(yaml.safe_load(f))]
        check("the schema takes the starter policy with every key", not errors, "\n".join(errors))
        errors = [e.message for e in validator.iter_errors(shown(
            "-p", "analysis", "--ro", b"\xff:/x", "--allow", "preset:debian", "--allow", "GET *.a.example/x", "--deny", "[::1]",
            "--allow", "tcp://a.example:1-9", "--secret", "K@a.example,basic", "--set", "network.exempt=c.example,B.example", cwd=tmp))]
        check("the schema takes a canonical policy", not errors, "\n".join(errors))
        for what, policy in (
                ("no version", {}), ("another version", {"pale": 2}), ("an unknown key", {"pale": 1, "memory": 1}),
                ("a later key", {"pale": 1, "network": {"ask": []}}), ("an unknown limit", {"pale": 1, "limits": {"wal": 1}}),
                ("a misspelt unit", {"pale": 1, "limits": {"memory": "5 parsecs"}}), ("an unknown word", {"pale": 1, "kernel": {"profile": "x"}}),
                ("a user named nobody", {"pale": 1, "user": "nobody"}), ("a long name", {"pale": 1, "user": "a" * 32}),
                ("a user name with a digit first", {"pale": 1, "user": "1a"}), ("a relative image", {"pale": 1, "image": "x/y"}),
                ("an image of /", {"pale": 1, "image": "/"}), ("a name for a user", {"pale": 1, "user": "A B"}), ("an unknown backend", {"pale": 1, "isolation": ["process", "x"]}),
                ("an entry without a place", {"pale": 1, "files": [{"access": "read"}]}), ("an unknown access", {"pale": 1, "files": [{"path": "/a", "access": "rw"}]}),
                ("a variable's name", {"pale": 1, "env": {"A-B": "1"}}), ("a variable of Pale's", {"pale": 1, "env": {"PALE_X": "1"}}),
                *((what, {"pale": 1, "network": {"allow": [entry]}}) for what, entry in (
                    ("a rule without a host", {"port": 443}), ("a host with a port", {"host": "a.example:443"}),
                    ("a URL as host", {"host": "https://a.example"}), ("an address as host", {"host": "192.0.2.1"}),
                    ("an address in one number as host", {"host": "2130706433"}), ("a hexadecimal address as host", {"host": "0x7f.1"}),
                    ("a wildcard within a host", {"host": "a.*.example"}), ("an empty label", {"host": "a..example"}),
                    ("a host that is not ASCII", {"host": "m\u00fcnchen.example"}), ("a name as address", {"address": "a.example"}),
                    ("a port by name", {"host": "a.example", "port": "https"}), ("a list as port", {"host": "a.example", "port": [443]}),
                    ("an unknown protocol", {"host": "a.example", "protocol": "https"}), ("no protocol", {"host": "a.example", "protocol": []}),
                    ("a method with a blank", {"host": "a.example", "methods": "GET x"}), ("no method", {"host": "a.example", "methods": []}),
                    ("a relative path", {"host": "a.example", "paths": ["v1"]}), ("a path with a query", {"host": "a.example", "paths": "/a?b"}),
                    ("a text as intercept", {"host": "a.example", "intercept": "yes"}), ("an unknown key in a rule", {"host": "a.example", "tls": True}))),
                *((what, {"pale": 1, "network": {"secrets": [{"env": "K", "value_from": "env:X", "hosts": "a.example", "header": "x", **entry}]}})
                  for what, entry in (("a variable with a dash", {"env": "A-B"}), ("a header with a blank", {"header": "a b"}),
                                      ("no hosts", {"hosts": []}), ("a wrong host", {"hosts": ["a b"]}))),
                ("a secret without a source", {"pale": 1, "network": {"secrets": [{"env": "K", "hosts": "a.example", "header": "x"}]}}),
                ("a secret without a host", {"pale": 1, "network": {"secrets": [{"env": "K", "value_from": "env:X", "header": "x"}]}}),
                ("a secret that is nowhere", {"pale": 1, "network": {"secrets": [{"value_from": "env:X", "hosts": "a.example", "header": "x"}]}}),
                ("a list as best effort", {"pale": 1, "best_effort": "memory"}), ("an unknown item", {"pale": 1, "best_effort": ["x"]})):
            with open(os.path.join(tmp, "wrong.json"), "w") as f:
                json.dump(policy, f)
            loader = run("policy", "check", os.path.join(tmp, "wrong.json")).returncode
            same(f"schema and loader refuse {what}", (validator.is_valid(policy), loader), (False, 1))

# Names that stand in texts: the flags of the documentation, the shipped policies of the help.
help_text = run("policy", "show", "--help").stdout.decode()
missing = [f for f in re.findall(r"`(--[a-z-]+)", read("docs/policy.md").decode()) if f + " " not in help_text.replace("\n", " ")]
check("each flag of docs/policy.md is one", not missing, missing)
named = re.search(r"NAME is a shipped policy \((.*?)\)", " ".join(run("policy", "init", "--help").stdout.decode().split())).group(1)
same("the help of init names the shipped policies", sorted(named.split(", ")),
     sorted(os.path.basename(n)[:-len(".yaml")] for n in policies if "/" not in n))

# The command line's own tables: no option twice, and help for each.
commands = json.loads(run("--dump-commands").stdout)
flat = [c for top in commands for c in [top, *top["subcommands"]]]
bad = []
for command in flat:
    names = [o["name"] for o in command["options"]]
    letters = [o["letter"] for o in command["options"] if "letter" in o]
    if len(set(names)) != len(names) or len(set(letters)) != len(letters):
        bad.append(f"{command['name']}: an option twice")
    if not command.get("summary") or any(not o.get("help") for o in command["options"]):
        bad.append(f"{command['name']}: without help")
    done = run(*command["name"].split(), "--help")
    if done.returncode != 0 or not all(f"--{name}" in done.stdout.decode() for name in names if not command["subcommands"]):
        bad.append(f"{command['name']}: --help")
    if any(len(line) > 100 for line in done.stdout.decode().splitlines()):
        bad.append(f"{command['name']}: a line of --help is too long")
check(f"the tables of {len(flat)} commands are whole", not bad, "\n".join(bad))
for args, status, text in (
        ((), 2, "a command is needed"), (("polcy",), 2, "did you mean policy?"), (("policy", "chek"), 2, "did you mean check?"),
        (("policy",), 2, "a command is needed"), (("policy", "show", "--memroy", "1"), 2, "did you mean --memory?"),
        (("policy", "show", "--memory"), 2, "--memory needs an argument: SIZE"), (("policy", "check", "--json=x", "a"), 2, "takes no argument"),
        (("policy", "show", "--mem", "1G"), 2, "did you mean --memory?"), (("policy", "show", "--mem=1G"), 2, "did you mean --memory?"),
        (("policy", "show", "--js"), 2, "did you mean --json?"), (("policy", "check", "-x"), 2, "there is no option -x"), (("policy", "check", "\x1b[31m"), 1, "\\x1b[31m"), (("\x1b",), 2, "\\x1b")):
    done = run(*args)
    check(f"pale {' '.join(a.replace(chr(27), 'ESC') for a in args)}: {text.replace(chr(27), 'ESC')}",
          done.returncode == status and text in done.stderr.decode() and "\x1b" not in done.stderr.decode(), done.stderr)
print(f"1..{count}")
