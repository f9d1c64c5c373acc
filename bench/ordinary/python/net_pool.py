# http.client with a connection that is kept, from several threads.
import http.client
import http.server
import threading
from concurrent.futures import ThreadPoolExecutor


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = self.path[::-1].encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def ask(n):
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
        answers = []
        for i in range(3):
            connection.request("GET", f"/{n}{i}")
            answers.append(connection.getresponse().read().decode())
        connection.close()
        return answers

    with ThreadPoolExecutor(4) as pool:
        print(list(pool.map(ask, range(4))))
    server.shutdown()
