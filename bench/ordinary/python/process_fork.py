# fork, pipe, waitpid, exec.
import os

r, w = os.pipe()
pid = os.fork()
if pid == 0:
    os.close(r)
    os.write(w, f"child of {os.getppid()}".encode())
    os._exit(7)
os.close(w)
print(os.read(r, 100).decode() == f"child of {os.getpid()}")
_, status = os.waitpid(pid, 0)
print(os.waitstatus_to_exitcode(status))
pid = os.fork()
if pid == 0:
    os.execvp("sh", ["sh", "-c", "exit 5"])
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
pid = os.posix_spawn("/bin/sh", ["sh", "-c", "kill -TERM $$"], os.environ)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
