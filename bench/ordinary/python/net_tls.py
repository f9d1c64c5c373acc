# A TLS server with a certificate made by openssl, and a client that verifies it.
import socket
import ssl
import subprocess
import threading

subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                "-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=localhost",
                "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert.pem", "key.pem")
listener = socket.create_server(("127.0.0.1", 0))
address = listener.getsockname()


def serve():
    with context.wrap_socket(listener, server_side=True) as tls:
        connection, _ = tls.accept()
        connection.sendall(connection.recv(100).upper())
        connection.close()


thread = threading.Thread(target=serve)
thread.start()
client = ssl.create_default_context(cafile="cert.pem")
with client.wrap_socket(socket.create_connection(address, 10), server_hostname="localhost") as s:
    s.sendall(b"secret")
    print(s.recv(100), s.version(), s.getpeercert()["subject"])
thread.join()
