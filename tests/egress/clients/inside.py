"""Runs in a box: each command of a list, one after the other, and says how it went.

usage: inside.py < [{"name": ..., "argv": [...], "env": {...}, "input": ..., "timeout": ...}, ...]
prints one JSON object: name -> {status, out, err, seconds}
"""
import json
import os
import subprocess
import sys
import time

results = {}
for case in json.load(sys.stdin):
    env = {k: v for k, v in {**os.environ, **case.get("env", {})}.items() if v is not None}
    begun = time.monotonic()
    try:
        p = subprocess.run(case["argv"], input=case.get("input", "").encode(), capture_output=True, env=env,
                           timeout=case.get("timeout", 20), cwd=case.get("cwd"))
        status, out, err = p.returncode, p.stdout, p.stderr
    except subprocess.TimeoutExpired as e:
        status, out, err = "timeout", e.stdout or b"", e.stderr or b""
    except OSError as e:
        status, out, err = "not run", b"", str(e).encode()
    results[case["name"]] = {"status": status, "seconds": round(time.monotonic() - begun, 4),
                             "out": out[:20000].decode(errors="replace"), "err": err[:8000].decode(errors="replace")}
print(json.dumps(results))
