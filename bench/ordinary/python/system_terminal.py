# What programs ask before they use colours.
import io
import os
import shutil
import sys

print(shutil.get_terminal_size((80, 24)).columns > 0, os.isatty(0), sys.stdout.isatty(), sys.stderr.isatty())
print(sys.stdin.read() == "")
try:
    os.get_terminal_size(0)
except OSError as e:
    print(e.errno)
try:
    input("name? ")
except EOFError:
    print("no input")
sys.stdout = io.StringIO()
print("captured")
text, sys.stdout = sys.stdout.getvalue(), sys.__stdout__
print(text.strip())
