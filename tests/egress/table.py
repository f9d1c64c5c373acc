"""The clients of the matrix: how each is told to fetch a URL, and what it says when that works.

client(url) gives the command; a row's flags say what it can do:
  6      told to use one address family only
  proxy  honours proxy variables by itself
"""
import os

from boxed import HERE, PYTHON, built

FETCH = os.path.join(HERE, "clients", "fetch.py")
NODE = os.path.join(HERE, "clients", "fetch.mjs")
GO = os.path.join(built or "", "fetch-go")
JAVA = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-cp", built or "", "Fetch"]

CLIENTS = {
    # name: (program that events name, honours proxy variables, command)
    "curl HTTP/1": ("curl", True, lambda u, m="GET": ["curl", "-sS", "--http1.1", "--fail-with-body", "-X", m, u]),
    "curl HTTP/2": ("curl", True, lambda u, m="GET": ["curl", "-sS", "--http2", "--fail-with-body", "-X", m, u]),
    "curl -4": ("curl", True, lambda u, m="GET": ["curl", "-sS", "-4", "--fail-with-body", "-X", m, u]),
    "curl -6": ("curl", True, lambda u, m="GET": ["curl", "-sS", "-6", "--fail-with-body", "-X", m, u]),
    "wget": ("wget", True, lambda u, m="GET": ["wget", "-nv", "-O-", "--tries=1", "--content-on-error", "--method=" + m, u]),
    "Python urllib": ("python3.11", True, lambda u, m="GET": [PYTHON, FETCH, "urllib", m, u]),
    "Python requests": ("python3.11", True, lambda u, m="GET": [PYTHON, FETCH, "requests", m, u]),
    "Python httpx": ("python3.11", True, lambda u, m="GET": [PYTHON, FETCH, "httpx", m, u]),
    "Python httpx HTTP/2": ("python3.11", True, lambda u, m="GET": [PYTHON, FETCH, "httpx2", m, u]),
    "Python asyncio": ("python3.11", False, lambda u, m="GET": [PYTHON, FETCH, "asyncio", m, u]),
    "Node fetch": ("node", False, lambda u, m="GET": ["node", NODE, "fetch", m, u]),
    "Node https": ("node", False, lambda u, m="GET": ["node", NODE, "http", m, u]),
    "Go": ("fetch-go", True, lambda u, m="GET": [GO, m, u]),
    "Java": ("java", False, lambda u, m="GET": [*JAVA, m, u]),
}


def present(name):
    import shutil
    argv = CLIENTS[name][2]("")
    return bool(shutil.which(argv[0], path="/usr/local/bin:/usr/bin:/bin")) or os.path.exists(argv[0])
