# The odd ways of starting a shell: os.system, os.popen, shlex, a heredoc.
import os
import shlex
import subprocess

print(os.waitstatus_to_exitcode(os.system("test -d /usr")))
with os.popen("printf '%s\\n' a b | tac") as pipe:
    print(pipe.read().split())
line = shlex.join(["printf", "%s|", "a b", "c'd"])
print(line, subprocess.getoutput(line))
script = "set -e\nx=$(mktemp)\ncat <<END >$x\nhello\nEND\nwc -c <$x\nrm $x\n"
print(subprocess.run(["sh", "-s"], input=script, capture_output=True, text=True).stdout.strip())
