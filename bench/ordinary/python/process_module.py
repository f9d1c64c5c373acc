# Write a package, run it with -m, import it, and reload it after a change.
import importlib
import os
import subprocess
import sys

os.mkdir("pack")
with open("pack/__init__.py", "w") as f:
    f.write("value = 1\n")
with open("pack/__main__.py", "w") as f:
    f.write("import sys\nfrom . import value\nprint('main', value, sys.argv[1:])\n")
print(subprocess.run([sys.executable, "-m", "pack", "a"], capture_output=True, text=True).stdout.strip())
sys.path.insert(0, os.getcwd())
sys.dont_write_bytecode = True
pack = importlib.import_module("pack")
with open("pack/__init__.py", "w") as f:
    f.write("value = 'changed'\n")
print(pack.value, importlib.reload(pack).value)
