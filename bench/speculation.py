"""What kernel.speculation and kernel.core_scheduling cost: the same small loops in boxes with and without.

    speculation.py --pale FILE --program FILE [--json] [--quick]

The kinds of box take turns, and each figure is the best of its turns, because others work on the machine. What
this host does not offer is said so, with the reason that Pale gives.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

KINDS = {"default": "", "speculation: strict": "speculation: strict", "core_scheduling: true": "core_scheduling: true",
         "l1d_flush: true": "l1d_flush: true"}
WHAT = {"switch": "a switch of processes, there and back", "branch": "an indirect call", "store": "a store and a load"}
parser = argparse.ArgumentParser()
parser.add_argument("--pale", required=True)
parser.add_argument("--program", required=True)
parser.add_argument("--json", action="store_true")
parser.add_argument("--quick", action="store_true")
options = parser.parse_args()
best, refused = {kind: {} for kind in KINDS}, {}
with tempfile.TemporaryDirectory(prefix="pale-bench.") as scratch:
    env = {**os.environ, "PALE_STATE_DIR": os.path.join(scratch, "state")}
    for turn in range(1 if options.quick else 5):
        for kind, keys in KINDS.items():
            if kind in refused:
                continue
            r = subprocess.run([options.pale, "run", "-q", "-p", "-", "--ro", options.program, "--",
                                os.path.abspath(options.program)], input=f"pale: 1\nkernel: {{{keys}}}\n", env=env,
                               capture_output=True, text=True, timeout=60)
            if r.returncode:
                refused[kind] = r.stderr.strip()
                continue
            for line in r.stdout.splitlines():
                name, value = line.split()
                best[kind][name] = min(best[kind].get(name, 1e9), float(value))
print(f"{'ns each':42} " + " ".join(f"{kind:>22}" for kind in KINDS), file=sys.stderr)
for name, text in WHAT.items():
    cells = [f"{best[k][name]:.1f} ({best[k][name] / best['default'][name]:.2f})" if best[k] else "refused" for k in KINDS]
    print(f"{text:42} " + " ".join(f"{c:>22}" for c in cells), file=sys.stderr)
for kind, why in refused.items():
    print(f"{kind}: {why}", file=sys.stderr)
if options.json:
    print(json.dumps({"ns": best, "refused": refused}))
