# Names of this machine.
import socket

print(socket.gethostbyname("localhost"))
assert {a[4][0] for a in socket.getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)} & {"127.0.0.1", "::1"}
assert socket.gethostbyname(socket.gethostname()).startswith(("127.", "1", "2", "3"))
print(socket.getservbyname("https"), socket.getprotobyname("tcp"), socket.getfqdn("localhost") != "")
print(socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, "::1")), socket.htons(1))
print("lo" in [name for _, name in socket.if_nameindex()])
