# A daemon: two forks, a session of its own, a pid file; then it is ended by its pid.
import os
import signal
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        with open("pid.tmp", "w") as f:
            f.write(str(os.getpid()))
        os.rename("pid.tmp", "pid")
        time.sleep(60)
    os._exit(0)
os.wait()
for _ in range(500):
    if os.path.exists("pid"):
        break
    time.sleep(0.01)
pid = int(open("pid").read())
print(os.getsid(pid) != os.getsid(0), os.path.exists(f"/proc/{pid}/stat"))
os.kill(pid, signal.SIGTERM)
for _ in range(500):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        print("ended")
        break
    time.sleep(0.01)
