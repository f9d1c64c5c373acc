# A child that takes too long, and a group of processes that is ended.
import os
import signal
import subprocess

try:
    subprocess.run(["sleep", "30"], timeout=0.2)
except subprocess.TimeoutExpired as e:
    print("timed out after", round(e.timeout, 1))
group = subprocess.Popen("sleep 30 & sleep 30", shell=True, start_new_session=True)
os.killpg(group.pid, signal.SIGTERM)
print(group.wait())
child = subprocess.Popen(["sleep", "30"])
child.kill()
print(child.wait() == -signal.SIGKILL)
