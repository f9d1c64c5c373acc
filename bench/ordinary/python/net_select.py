# A chat server with selectors, three clients.
import selectors
import socket
import threading

listener = socket.create_server(("127.0.0.1", 0))
port, names = listener.getsockname()[1], []
loop = selectors.DefaultSelector()
loop.register(listener, selectors.EVENT_READ)


def client(name):
    with socket.create_connection(("127.0.0.1", port), timeout=10) as s:
        s.sendall(name.encode() + b"\n")
        assert s.recv(100) == b"hi " + name.encode()


threads = [threading.Thread(target=client, args=(n,)) for n in ("ann", "bob", "cyn")]
for t in threads:
    t.start()
while len(names) < 3:
    for key, _ in loop.select(10):
        if key.fileobj is listener:
            connection, _ = listener.accept()
            loop.register(connection, selectors.EVENT_READ)
        else:
            line = key.fileobj.recv(100).strip()
            key.fileobj.sendall(b"hi " + line)
            loop.unregister(key.fileobj)
            key.fileobj.close()
            names.append(line.decode())
for t in threads:
    t.join()
print(sorted(names))
