"""Where a program runs: outside, in a box, and in the sandboxes beside it; and as whom.

A place makes a command line from a program's. All of them show the program the same: /usr, the
folder with the programs read-only, a writable /tmp and HOME, loopback and no other network.
"""
import json
import os
import pwd
import shutil
import subprocess

LINKS = {"/bin": "usr/bin", "/sbin": "usr/sbin", "/lib": "usr/lib", "/lib64": "usr/lib64"}
PATH = "/usr/local/bin:/usr/bin:/bin"


class Who:
    """A caller: how to run a command as it, and a directory of its own."""

    def __init__(self, name, user, scratch):
        self.name = name
        self.home = os.path.join(scratch, name)
        os.makedirs(self.home + "/home")
        self.prefix = []
        self.uid, self.gid = os.getuid(), os.getgid()
        self.env = {"HOME": self.home + "/home", "PATH": PATH, "LANG": "C.UTF-8", "TMPDIR": self.home + "/tmp",
                    "PALE_STATE_DIR": self.home + "/state"}
        os.mkdir(self.home + "/tmp")
        if user:
            entry = pwd.getpwnam(user)
            self.uid, self.gid = entry.pw_uid, entry.pw_gid
            for path in (self.home, self.home + "/home", self.home + "/tmp"):
                os.chown(path, self.uid, self.gid)
            self.prefix = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
            self.env |= {"USER": user, "LOGNAME": user}

    def run(self, command, timeout, cwd="/"):
        """Standard output and error together, and the status; None if it took too long. Nothing of it is left."""
        # A caller in the background ignores interrupts, and so would all that it starts.
        with subprocess.Popen(["env", "--default-signal", *self.prefix, *command], env=self.env, cwd=cwd,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              start_new_session=True) as process:
            try:
                out, err = process.communicate(timeout=timeout)
                status = process.returncode
            except subprocess.TimeoutExpired:
                status = None
            try:
                os.killpg(process.pid, 9)
            except ProcessLookupError:
                pass
            if status is None:
                out, err = process.communicate()
        return status, out.decode(errors="replace"), err.decode(errors="replace")


def bwrap(show):
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/usr", "/usr",
               "--ro-bind", "/etc", "/etc", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
               "--dir", "/tmp/home", "--setenv", "HOME", "/tmp/home", "--setenv", "TMPDIR", "/tmp"]
    for link, target in LINKS.items():
        command += ["--symlink", target, link]
    return [*command, "--ro-bind", show, show, "--chdir", show, "--"]


def runsc(who):
    """gVisor by `runsc do`: the host's files read-only below an overlay in memory. PALE_BENCH_RUNSC names another
    runsc, with its flags, such as `/opt/runsc --platform=systrap`."""
    given = os.environ.get("PALE_BENCH_RUNSC", "").split()
    start = given or ["runsc", "--platform=ptrace"]
    return [*start, "--rootless", "--network=none", "--ignore-cgroups", "--root", who.home + "/runsc", "do"]


def missing(command):
    return None if shutil.which(command[0], path=PATH + ":/usr/sbin") or os.path.exists(command[0]) else "not installed"


def json_of(text):
    try:
        return json.loads(text)
    except ValueError:
        return {}
