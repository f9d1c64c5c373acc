# Unix sockets: a path, an abstract name, a descriptor that is handed over, credentials.
import os
import socket
import struct

for name in ("socket", "\0abstract-test"):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(name)
        listener.listen()
        client = socket.socket(socket.AF_UNIX)
        client.connect(name)
        server, _ = listener.accept()
        client.sendall(b"x")
        pid, uid, gid = struct.unpack("3i", server.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        print(server.recv(1), pid == os.getpid(), uid == os.getuid())
        client.close()
        server.close()
left, right = socket.socketpair()
with open("f", "w+") as f:
    f.write("through a socket")
    f.flush()
    socket.send_fds(left, [b"here"], [f.fileno()])
message, fds, _, _ = socket.recv_fds(right, 10, 1)
print(message, os.pread(fds[0], 100, 0))
