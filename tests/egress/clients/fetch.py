"""An HTTP client in Python, four ways. usage: fetch.py LIBRARY METHOD URL [HEADER:VALUE...] [--body TEXT]
Prints the body; on failure what a program would print, and how long it took, in ms."""
import asyncio
import ssl
import sys
import time
from urllib.parse import urlsplit

library, method, url, *more = sys.argv[1:]
body = None
if "--body" in more:
    at = more.index("--body")
    body = more[at + 1].encode()
    del more[at:at + 2]
headers = dict(h.split(":", 1) for h in more)


def urllib():
    import urllib.error
    import urllib.request
    r = urllib.request.Request(url, data=body, headers=headers, method=method)
    try:
        return 200, urllib.request.urlopen(r, timeout=15).read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()


def requests():
    import requests as library
    r = library.request(method, url, data=body, headers=headers, timeout=15)
    return r.status_code, r.content


def httpx(h2=False):
    import httpx as library
    with library.Client(http2=h2, timeout=15) as c:
        r = c.request(method, url, content=body, headers=headers)
        return r.status_code, r.content


def httpx2():
    return httpx(True)


async def raw():
    to = urlsplit(url)
    context = ssl.create_default_context() if to.scheme == "https" else None
    reader, writer = await asyncio.open_connection(to.hostname, to.port or (443 if context else 80), ssl=context)
    head = "".join(f"{k}: {v}\r\n" for k, v in headers.items())
    writer.write(f"{method} {to.path or '/'} HTTP/1.1\r\nHost: {to.netloc}\r\nConnection: close\r\n{head}"
                 f"Content-Length: {len(body or b'')}\r\n\r\n".encode() + (body or b""))
    answer = await asyncio.wait_for(reader.read(), 15)
    writer.close()
    head, _, content = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), content


ways = {"urllib": urllib, "requests": requests, "httpx": httpx, "httpx2": httpx2, "asyncio": lambda: asyncio.run(raw())}
run = ways[library]
if library in ("requests", "httpx", "httpx2"):
    __import__(library.rstrip("2"))  # not in the time
else:
    ssl.create_default_context(), __import__("urllib.request")
begun = time.monotonic()
try:
    status, content = run()
except Exception as e:
    print(f"{type(e).__name__}: {e}", file=sys.stderr)
    print(f"after {(time.monotonic() - begun) * 1000:.1f} ms", file=sys.stderr)
    sys.exit(1)
sys.stdout.buffer.write(content)
if status >= 400:
    print(f"status {status} after {(time.monotonic() - begun) * 1000:.1f} ms", file=sys.stderr)
    sys.exit(22)
