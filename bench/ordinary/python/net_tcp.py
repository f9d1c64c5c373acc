# A TCP echo server and a client, over IPv4 and IPv6 loopback.
import socket
import threading


def serve(listener):
    connection, _ = listener.accept()
    with connection:
        while data := connection.recv(1024):
            connection.sendall(data[::-1])


for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    with socket.create_server((address, 0), family=family) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        with socket.create_connection(listener.getsockname()[:2], timeout=10) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.sendall(b"hello")
            print(address, client.recv(1024))
            client.shutdown(socket.SHUT_WR)
            print(client.recv(1024))
        thread.join()
