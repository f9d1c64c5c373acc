# argparse, its errors and exits; atexit; exit statuses.
import argparse
import subprocess
import sys

parser = argparse.ArgumentParser(prog="tool")
parser.add_argument("--count", type=int, default=1)
parser.add_argument("names", nargs="+")
print(parser.parse_args(["--count", "3", "a", "b"]))
try:
    parser.parse_args(["--count", "x", "a"])
except SystemExit as e:
    print("status", e.code)
done = subprocess.run([sys.executable, "-c", "import atexit, sys; atexit.register(print, 'bye'); sys.exit(9)"],
                      capture_output=True, text=True)
print(done.returncode, done.stdout.strip())
print(subprocess.run([sys.executable, "-c", "raise ValueError('x')"], capture_output=True, text=True).stderr.splitlines()[-1])
