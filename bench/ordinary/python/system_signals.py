# Handlers, an alarm, a mask, a wait.
import os
import signal
import time

seen = []
for s in (signal.SIGUSR1, signal.SIGALRM, signal.SIGTERM):
    signal.signal(s, lambda number, frame: seen.append(signal.Signals(number).name))
os.kill(os.getpid(), signal.SIGUSR1)
signal.setitimer(signal.ITIMER_REAL, 0.02)
signal.pause()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
signal.raise_signal(signal.SIGTERM)
print(signal.sigpending(), seen)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
print(seen)
ready, told = os.pipe()
pid = os.fork()
if pid == 0:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.write(told, b"x")
    time.sleep(60)
    os._exit(1)
os.read(ready, 1)
os.kill(pid, signal.SIGINT)
print(os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGINT)
