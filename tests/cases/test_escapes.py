"""Ways out that were used against tools of this kind: each must fail in a box, and work outside."""
import ctypes
import json
import os
import secrets
import socket
import subprocess
import threading

from case import *

libc = ctypes.CDLL(None, use_errno=True)
token = "canary-" + secrets.token_hex(8)
secret = write("home/.ssh/id_ed25519", token + "\n", 0o600)
attacks = os.path.join(here, "attacks.py")
target = os.path.join(work, "written-from-inside")

# Work outside for everybody who has a kernel as usual; else the attack itself is broken.
ALWAYS = """
file_directly file_by_proc_self_root file_by_proc_cwd_of_others file_by_dots file_by_link file_by_the_loader
file_by_a_program_in_memory file_by_a_copied_program file_by_inherited_descriptor file_by_inherited_directory
descriptors_besides_the_standard_ones write_to_the_host see_a_process_of_the_host
see_any_command_line_of_the_host see_the_callers_environment inherit_the_callers_environment
signal_a_process_of_the_host look_at_the_first_process connect_to_loopback connect_to_unix_socket
connect_to_abstract_socket send_a_datagram send_over_a_standard_stream shared_memory_of_the_host
message_queue_of_the_host the_callers_keyring any_other_socket_family
""".split()
ALWAYS_ROOT = """
write_to_usr write_to_etc mount_a_tmpfs mount_without_a_namespace bind_over_etc remount_usr_writable
new_mount_api_fsopen new_mount_api_open_tree change_the_root join_the_hosts_namespaces raise_the_priority
become_root have_a_capability a_raw_socket a_packet_socket
read_the_memory_of_the_first_process unshare_a_user_namespace call_sethostname call_mount_setattr
any_writable_kernel_setting
""".split()
# The calls whose refusal is reported by name.
REPORTED = "keyctl add_key bpf perf_event_open io_uring_setup userfaultfd unshare mount ptrace socket".split()


def serve(family, address, kind=socket.SOCK_STREAM):
    """A service of the host that gives the token to whoever reaches it, and counts them."""
    s = socket.socket(family, kind)
    s.bind(address)
    reached = []
    if kind == socket.SOCK_STREAM:
        s.listen()

    def loop():
        while True:
            try:
                if kind == socket.SOCK_STREAM:
                    peer, _ = s.accept()
                    reached.append(1)
                    peer.sendall(token.encode())
                    peer.close()
                else:
                    _, peer = s.recvfrom(100)
                    reached.append(1)
                    s.sendto(token.encode(), peer)
            except OSError:
                return
    threading.Thread(target=loop, daemon=True).start()
    return s, reached


tcp, tcp_reached = serve(socket.AF_INET, ("127.0.0.1", 0))
udp, udp_reached = serve(socket.AF_INET, ("127.0.0.1", 0), socket.SOCK_DGRAM)
unix, unix_reached = serve(socket.AF_UNIX, os.path.join(place, "service.sock"))
abstract, abstract_reached = serve(socket.AF_UNIX, "\0pale-" + token)

# A process, a memory segment, a queue and a key of the caller's.
neighbour = subprocess.Popen([PYTHON, "-c", "import time; time.sleep(600)", token], env={"CANARY": token})
shm = libc.shmget(0, 4096, 0o600 | 0o1000)
libc.shmat.restype = ctypes.c_void_p
ctypes.memmove(ctypes.c_void_p(libc.shmat(shm, None, 0)), token.encode() + b"\0", len(token) + 1)
queue = "pale-" + token
x86 = os.uname().machine == "x86_64"
mqd = libc.syscall(240 if x86 else 180, queue.encode(), os.O_RDWR | os.O_CREAT, 0o600, None)
libc.syscall(250 if x86 else 219, 1, None)  # KEYCTL_JOIN_SESSION_KEYRING
libc.syscall(248 if x86 else 217, b"user", queue.encode(), token.encode(), len(token), -3)

given = {"secret": secret, "token": token, "target": target, "pid": neighbour.pid, "port": tcp.getsockname()[1],
         "udp": udp.getsockname()[1], "unix": os.path.join(place, "service.sock"), "abstract": "pale-" + token,
         "shm": shm, "queue": queue, "key": queue, "first": neighbour.pid}
file_fd = os.open(secret, os.O_RDONLY)
dir_fd = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
one, other = socket.socketpair()
handed = {"pass_fds": [file_fd, dir_fd], "stdin": other, "stderr": subprocess.PIPE, "stdout": subprocess.PIPE,
          "cwd": place, "timeout": 120}

try:
    # Outside, in mounts of its own and without a terminal: what the attacks do must not stay.
    prefix = ["unshare", "--mount", "--propagation", "private"] if root else []
    p = subprocess.run([*prefix, PYTHON, attacks, json.dumps(given)], env={**env, "CANARY": token},
                       start_new_session=True, **handed)
    out = json.loads(p.stdout)
    for l in (tcp_reached, udp_reached, unix_reached, abstract_reached):
        l.clear()
    if os.path.exists(target):
        os.unlink(target)

    given["first"] = 1
    p = subprocess.run([*command("--json", "--ro", attacks, "--timeout", "60s"), "--", PYTHON, attacks, json.dumps(given)],
                       env={**env, "CANARY": token}, **handed)
    result = Result(p)
    inside = json.loads(result.out)
except Exception as e:
    check("the attacks ran", False, f"{type(e).__name__}: {e}\n{locals().get('result', '')}")
    out = inside = {}

for name, got in inside.items():
    what = name.replace("_", " ")
    before = out.get(name, "nothing")
    check(f"{what}: denied", got.startswith("no "), f"inside: {got}\noutside: {before}")
    if name in ALWAYS or (root and name in ALWAYS_ROOT):
        check(f"{what}: works outside", before.startswith("got "), before)
    elif not before.startswith("got "):
        print(f"# {what}: not possible outside either, here: {before[:70]}")
if inside:
    known = set(ALWAYS + ALWAYS_ROOT)
    same("each attack that is expected to work outside is there", sorted(known - set(inside)), [])
    same("the host's services were not reached", [tcp_reached, udp_reached, unix_reached, abstract_reached], [[]] * 4)
    check("nothing was written to the host", not os.path.exists(target))
    for name in REPORTED:
        check(f"the refused {name} is in the result", result.was_blocked(name), result.blocked)

    # And in the log, for whoever looks later.
    p = subprocess.run([pale, "audit", "show", result.all["audit_id"], "--json"], env=env, capture_output=True)
    for name in REPORTED:
        check(f"the refused {name} is in the audit log", name.encode() in p.stdout, p.stdout[:300])

neighbour.kill()
neighbour.wait()
libc.shmctl(shm, 0, None)
libc.syscall(241 if x86 else 181, queue.encode())
done()
