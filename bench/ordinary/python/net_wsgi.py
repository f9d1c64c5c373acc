# A WSGI application with a form, served by wsgiref.
import threading
import urllib.parse
import urllib.request
from wsgiref.simple_server import WSGIRequestHandler, make_server


class Quiet(WSGIRequestHandler):
    def log_message(self, *args):
        pass


def application(environ, start):
    form = urllib.parse.parse_qs(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)).decode())
    start("200 OK", [("Content-Type", "text/plain; charset=utf-8")])
    return [f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']} {form}".encode()]


with make_server("127.0.0.1", 0, application, handler_class=Quiet) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    data = urllib.parse.urlencode({"name": "Zoë", "n": 1}).encode()
    print(urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/form", data).read().decode())
    server.shutdown()
