# subprocess.run: output, input, status, environment, directory.
import os
import subprocess

print(subprocess.run(["echo", "hello"], capture_output=True, text=True).stdout.strip())
print(subprocess.run(["sort"], input="b\na\nc\n", capture_output=True, text=True).stdout.split())
print(subprocess.run("exit 3", shell=True).returncode)
print(subprocess.check_output("echo $X-$(basename $PWD)", shell=True, env={**os.environ, "X": "1"}, cwd="/usr", text=True).strip())
try:
    subprocess.run(["false"], check=True)
except subprocess.CalledProcessError as e:
    print(e)
try:
    subprocess.run(["no-such-program"])
except FileNotFoundError as e:
    print(e)
