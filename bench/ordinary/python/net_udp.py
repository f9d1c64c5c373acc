# Datagrams, and a multicast group on loopback.
import socket

a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
b = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for s in (a, b):
    s.bind(("127.0.0.1", 0))
    s.settimeout(10)
a.sendto(b"ping", b.getsockname())
data, sender = b.recvfrom(100)
print(data, sender == a.getsockname())
b.sendto(b"pong", sender)
print(a.recvfrom(100)[0])
a.connect(b.getsockname())
a.send(b"connected")
print(b.recv(100), a.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == socket.SOCK_DGRAM)
