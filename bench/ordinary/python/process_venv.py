# A virtual environment without pip, and its interpreter.
import subprocess
import sys
import venv

venv.create("env", with_pip=False)
code = "import sys; print(sys.prefix != sys.base_prefix, sys.prefix.endswith('/env'))"
print(subprocess.run(["env/bin/python", "-c", code], capture_output=True, text=True).stdout.strip())
print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip())
