"""What the servers of the test's internet say: a site for every name, and stand-ins for the services
that the shipped presets and policies name (a package index each for pip, npm, cargo and Go; a forge
with git and an API)."""
import base64
import gzip
import hashlib
import io
import json
import os
import subprocess
import tarfile
import threading
import time
import zipfile
from urllib.parse import parse_qs, urlsplit

from .http import Response
from .zone import NPM

PACKAGE, VERSION = "standin-package", "1.2.3"


def as_json(value, status=200, headers=()):
    return Response(status, json.dumps(value).encode(), "application/json", list(headers))


def not_found():
    return Response(404, b"not found\n")


def wheel():
    name = PACKAGE.replace("-", "_")
    files = {f"{name}/__init__.py": "answer = 42\n",
             f"{name}-{VERSION}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {VERSION}\n",
             f"{name}-{VERSION}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: standin\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    files[f"{name}-{VERSION}.dist-info/RECORD"] = "".join(f"{n},,\n" for n in files)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for n, text in files.items():
            z.writestr(n, text)
    return f"{name}-{VERSION}-py3-none-any.whl", out.getvalue()


def tarball(files, top):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        for name, text in files.items():
            info = tarfile.TarInfo(f"{top}/{name}")
            info.size = len(text)
            t.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


def module_zip(path, version):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.writestr(f"{path}@{version}/go.mod", f"module {path}\n\ngo 1.19\n")
        z.writestr(f"{path}@{version}/answer.go", "package standin\n\nconst Answer = 42\n")
    return out.getvalue()


def held(seconds):
    yield b"begun\n"
    time.sleep(seconds)
    yield b"over\n"


class Sites:
    def __init__(self, world, record):
        self.world, self.record = world, record
        self.wheel_name, self.wheel = wheel()
        self.npm = tarball({"package.json": json.dumps({"name": PACKAGE, "version": VERSION, "main": "index.js"}),
                            "index.js": "module.exports = 42\n"}, "package")
        self.crate = tarball({"Cargo.toml": f'[package]\nname = "{PACKAGE}"\nversion = "{VERSION}"\nedition = "2021"\n',
                              "src/lib.rs": "pub fn answer() -> i32 { 42 }\n"}, f"{PACKAGE}-{VERSION}")
        self.module = module_zip("example.com/standin", "v" + VERSION)
        self.issues = [{"number": 1, "title": "It works", "state": "open"}]
        self.lock = threading.Lock()
        self.by_host = {"pypi.org": self.pypi, "files.pythonhosted.org": self.pypi_files, NPM: self.npmjs,
                        "index.crates.io": self.crates_index, "static.crates.io": self.crates_files,
                        "proxy.golang.org": self.go_proxy, "api.github.com": self.github_api, "github.com": self.git,
                        "git.example.com": self.git, "169.254.169.254": self.metadata}

    def answer(self, request):
        special = self.by_host.get(request.host.lower())
        response = special(request) if special else None
        return response or self.anywhere(request)

    # ------------------------------------------------------------ every name

    def anywhere(self, r):
        query = parse_qs(urlsplit(r.target).query)
        match r.path.strip("/").split("/"):
            case ["headers"]:  # shows what arrived, secrets included
                return as_json({"method": r.method, "target": r.target, "headers": r.headers})
            case ["headers-gzip"]:
                return Response(200, gzip.compress(json.dumps(r.headers).encode()), "application/json",
                                [("Content-Encoding", "gzip")])
            case ["header-back"]:  # the same in a header of the answer
                return Response(200, b"see X-Seen\n", headers=[("X-Seen", r.header("authorization", "nothing"))])
            case ["echo"]:
                return Response(200, r.body, r.header("content-type", "application/octet-stream"))
            case ["bytes", n]:
                return Response(200, b"x" * int(n), "application/octet-stream")
            case ["stream", n]:
                return Response(200, chunks=[b"line %d\n" % i for i in range(int(n))], trailers=[("x-check", "done")])
            case ["hold", seconds]:  # begins, and goes on later
                return Response(200, chunks=held(float(seconds)))
            case ["split-secret"]:  # in pieces, so that a filter that looks at one at a time sees neither
                text = (r.header("authorization") or "").encode()
                return Response(200, chunks=[text[i:i + 3] for i in range(0, len(text), 3)])
            case ["status", n]:
                return Response(int(n), b"as you wished\n")
            case ["redirect"]:
                return Response(302, b"elsewhere\n", headers=[("Location", query["to"][0])])
            case ["trailers"]:
                return as_json({"trailers": r.trailers, "bytes": len(r.body)})
        return Response(200, f"hello from {r.host}: {r.method} {r.target} by {r.version}\n".encode())

    def metadata(self, r):
        self.record("metadata", path=r.target)
        return Response(200, b"METADATA-CANARY\n")

    # ------------------------------------------------------------ package indexes

    def pypi(self, r):
        if r.path == f"/simple/{PACKAGE}/":
            digest = hashlib.sha256(self.wheel).hexdigest()
            link = f"https://files.pythonhosted.org/packages/{self.wheel_name}#sha256={digest}"
            return Response(200, f'<!DOCTYPE html><html><body><a href="{link}">{self.wheel_name}</a></body></html>\n'.encode(),
                            "text/html")
        if r.path.startswith("/simple/"):
            return not_found()
        if r.path == "/legacy/":
            return Response(200, b"uploaded\n")
        return None

    def pypi_files(self, r):
        return Response(200, self.wheel, "application/octet-stream") if r.path == f"/packages/{self.wheel_name}" else None

    def npmjs(self, r):
        if r.method == "PUT":
            return as_json({"ok": True}, 201)
        if r.path == f"/{PACKAGE}":
            integrity = "sha512-" + base64.b64encode(hashlib.sha512(self.npm).digest()).decode()
            return as_json({"name": PACKAGE, "dist-tags": {"latest": VERSION}, "versions": {VERSION: {
                "name": PACKAGE, "version": VERSION, "main": "index.js", "dist": {
                    "tarball": f"https://{NPM}/{PACKAGE}/-/{PACKAGE}-{VERSION}.tgz",
                    "shasum": hashlib.sha1(self.npm).hexdigest(), "integrity": integrity}}}})
        if r.path.endswith(".tgz"):
            return Response(200, self.npm, "application/octet-stream")
        if r.path.startswith("/-/npm/v1/security"):
            return as_json({})
        return as_json({"error": "not found"}, 404)

    def crates_index(self, r):
        if r.path == "/config.json":
            return as_json({"dl": "https://static.crates.io/crates", "api": "https://crates.io"})
        if r.path == f"/{PACKAGE[:2]}/{PACKAGE[2:4]}/{PACKAGE}":
            return Response(200, json.dumps({"name": PACKAGE, "vers": VERSION, "deps": [], "features": {}, "yanked": False,
                                             "cksum": hashlib.sha256(self.crate).hexdigest()}).encode() + b"\n")
        return not_found()

    def crates_files(self, r):
        return Response(200, self.crate, "application/gzip")

    def go_proxy(self, r):
        at = "/example.com/standin/@v/"
        if r.path == at + "list":
            return Response(200, f"v{VERSION}\n".encode())
        if r.path in (at + f"v{VERSION}.info", "/example.com/standin/@latest"):
            return as_json({"Version": "v" + VERSION, "Time": "2024-01-01T00:00:00Z"})
        if r.path == at + f"v{VERSION}.mod":
            return Response(200, b"module example.com/standin\n\ngo 1.19\n")
        if r.path == at + f"v{VERSION}.zip":
            return Response(200, self.module, "application/zip")
        return not_found()

    # ------------------------------------------------------------ a forge

    def github_api(self, r):
        parts = r.path.strip("/").split("/")
        if parts[0] != "repos" or len(parts) < 3:
            return as_json({"login": "standin"}) if r.path == "/user" else None
        with self.lock:
            if parts[3:] == ["issues"] and r.method == "POST":
                self.issues.append({"number": len(self.issues) + 1, **json.loads(r.body or b"{}")})
                return as_json(self.issues[-1], 201)
            if parts[3:] == ["issues"]:
                return as_json(self.issues)
        if r.method != "GET":
            return as_json({"changed": True})
        return as_json({"full_name": "/".join(parts[1:3]), "default_branch": "main", "private": False})

    def make_repositories(self):
        top = self.world.repositories
        git = ["git", "-c", "user.name=Standin", "-c", "user.email=standin@example.com", "-c", "init.defaultBranch=main"]
        env = {"PATH": "/usr/bin:/bin", "HOME": self.world.place, "GIT_CONFIG_NOSYSTEM": "1"}
        first = os.path.join(top, "first")
        os.makedirs(first)
        with open(first + "/README", "w") as f:
            f.write("a repository of the test's internet\n")

        def do(*command, cwd=first):
            subprocess.run([*git, *command], cwd=cwd, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        do("init", "-q")
        do("add", ".")
        do("commit", "-q", "-m", "First")
        do("clone", "-q", "--bare", first, top + "/project.git", cwd=top)
        do("config", "http.receivepack", "true", cwd=top + "/project.git")

    def git(self, r):
        """github.com/any/project.git and git.example.com/project.git are one repository."""
        at = r.path.find("project.git/")
        if at < 0:
            return None
        env = {"PATH": "/usr/bin:/bin", "HOME": self.world.place, "GIT_PROJECT_ROOT": self.world.repositories,
               "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": "/" + r.path[at:], "REQUEST_METHOD": r.method,
               "QUERY_STRING": r.target.partition("?")[2], "CONTENT_TYPE": r.header("content-type", ""),
               "HTTP_CONTENT_ENCODING": r.header("content-encoding", ""), "CONTENT_LENGTH": str(len(r.body)),
               "GIT_PROTOCOL": r.header("git-protocol", ""), "REMOTE_ADDR": "192.0.2.1", "REMOTE_USER": "standin"}
        p = subprocess.run(["/usr/lib/git-core/git-http-backend"], input=r.body, env=env, capture_output=True)
        head, _, body = p.stdout.partition(b"\r\n\r\n")
        headers = [tuple(x.strip() for x in line.split(":", 1)) for line in head.decode().splitlines() if ":" in line]
        status = next((int(v.split()[0]) for k, v in headers if k.lower() == "status"), 200)
        kind = next((v for k, v in headers if k.lower() == "content-type"), "text/plain")
        return Response(status, body, kind, [(k, v) for k, v in headers if k.lower() not in ("status", "content-type")])
