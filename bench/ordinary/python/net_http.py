# http.server in a thread, urllib as its client.
import http.server
import json
import threading
import urllib.error
import urllib.request


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        found = self.path == "/hello"
        self.send_response(200 if found else 404)
        self.end_headers()
        self.wfile.write(b"hello" if found else b"no")

    def do_POST(self):
        data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(201)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps({"sum": sum(data)}).encode())

    def log_message(self, *args):
        pass


with http.server.ThreadingHTTPServer(("localhost", 0), Handler) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://localhost:{server.server_port}"
    print(urllib.request.urlopen(url + "/hello").read())
    try:
        urllib.request.urlopen(url + "/other")
    except urllib.error.HTTPError as e:
        print(e.code)
    with urllib.request.urlopen(url, data=json.dumps([1, 2, 3]).encode()) as answer:
        print(answer.status, json.load(answer))
    server.shutdown()
