"""A command at a terminal of its own, for the tests: what it shows is waited for, and keys are typed."""
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time


class Terminal:
    def __init__(self, command, env, rows=24, columns=100, **more):
        self.seen = ""
        self.at = 0
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.execve(command[0], command, env)
            finally:
                os._exit(126)
        termios.tcsetwinsize(self.fd, (rows, columns)) if hasattr(termios, "tcsetwinsize") else None

    def read(self, seconds):
        """Whether something came."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            data = b""
        self.seen += data.decode(errors="replace")
        return bool(data)

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait(self, pattern, seconds=15):
        """The next place where it matches, behind the last one; without colours and the like."""
        end = time.monotonic() + seconds
        while True:
            plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", self.seen)
            match = re.compile(pattern).search(plain, self.at)
            if match:
                self.at = match.end()
                return match
            if time.monotonic() > end or not self.read(min(1, max(0, end - time.monotonic()))):
                if time.monotonic() > end:
                    return None

    def line(self, text, pattern, seconds=15):
        self.type(text + "\r")
        return self.wait(pattern, seconds)

    def rest(self):
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", self.seen)[self.at:]

    def mode(self):
        return termios.tcgetattr(self.fd)[3]

    def end(self, seconds=15):
        """Waits for its end: the exit status."""
        stop = time.monotonic() + seconds
        while time.monotonic() < stop:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                while self.read(0.05):
                    pass
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
            self.read(0.05)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)
        return None
