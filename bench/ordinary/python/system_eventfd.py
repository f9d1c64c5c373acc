# eventfd, epoll, timers and pidfds, as event loops use them.
import os
import select
import signal
import subprocess

event = os.eventfd(0, os.EFD_NONBLOCK)
poll = select.epoll()
poll.register(event, select.EPOLLIN)
print(poll.poll(0.01))
os.eventfd_write(event, 3)
print([(fd == event, mask) for fd, mask in poll.poll(10)], os.eventfd_read(event))
child = subprocess.Popen(["sleep", "30"])
fd = os.pidfd_open(child.pid)
signal.pidfd_send_signal(fd, signal.SIGKILL)
print(bool(select.select([fd], [], [], 10)[0]), child.wait())
