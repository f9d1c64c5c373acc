"""Each attack on the kernel's surface: works without the filter (where the kernel and the user allow it),
is denied under it in each profile, and is told to the listener. TAP on stdout.

usage: attacks.py PALE-ATTACKS FILTERED LISTENED ATTACK...
"""
import os
import subprocess
import sys

program, filtered, listened, *attacks = sys.argv[1:]
must = os.environ.get("PALE_MUST_WORK", "").split(",")

# What the profile `nested` is for.
NESTED = {"chroot", "clone3_user", "clone_user", "mount", "mount_api", "mount_setattr", "open_tree", "pivot_root",
          "setns", "unshare_time", "unshare_user"}
# Nothing to find on this kernel, whoever asks.
ABSENT = {"af_alg", "sctp", "iopl", "kernel_module", "kexec", "x32", "unknown_call", "tioclinux"}
number = 0
failed = False


def result(ok, text, skip=""):
    global number, failed
    number += 1
    failed |= not ok
    print(f"{'ok' if ok else 'not ok'} {number} - {text}{' # SKIP ' + skip if skip else ''}")


def run(*command, events=False):
    """The exit status, what it printed, and the events."""
    r, w = os.pipe()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          preexec_fn=lambda: os.dup2(w, 3), pass_fds=(3,)) as process:
        os.close(w)
        output = process.communicate(timeout=60)[0].decode(errors="replace").strip()
    with open(r, encoding="utf-8", errors="replace") as f:
        lines = [line.rstrip("\n").split("\t") for line in f] if events else []
    return process.returncode, output, lines


for name in attacks:
    status, output, _ = run(program, name)
    free = status == 1 and output == "SUCCEEDED"
    # Only root can do all of it; a skip says what this run could not show.
    if free:
        result(True, f"{name} works without the filter")
    else:
        show = "root" in must and os.geteuid() == 0 and name not in ABSENT
        result(not show, f"{name} works without the filter", "" if show else f"{output or status}")
    for profile in "default", "strict", "nested":
        if profile == "nested" and name in NESTED:
            continue
        status, output, _ = run(filtered, profile, program, name)
        # No terminal, no attack on it: strict lets none be opened.
        ok = status == 0 and output.startswith("denied ") or status == 77 and profile == "strict" and output == "not here"
        ok |= status == 77 and output == "not here" and not free
        result(ok, f"{name} is denied in {profile}: {output}")
        if profile == "strict" or output == "not here":
            continue
        again, output, lines = run(listened, profile, "0", program, name, events=True)
        told = [line for line in lines if line[0] == "call" and line[4] != "0"]
        result(again == 0 and bool(told), f"{name} is told in {profile}: "
               + ("; ".join(" ".join(filter(None, line[2:5])) for line in told) or "nothing"))
print(f"1..{number}")
sys.exit(failed)
