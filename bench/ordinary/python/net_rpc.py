# XML-RPC with a server of one's own.
import threading
import xmlrpc.client
from xmlrpc.server import SimpleXMLRPCServer

with SimpleXMLRPCServer(("localhost", 0), logRequests=False, allow_none=True) as server:
    server.register_function(lambda a, b: a * b, "multiply")
    server.register_introspection_functions()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    proxy = xmlrpc.client.ServerProxy(f"http://localhost:{server.server_address[1]}")
    print(proxy.multiply(6, 7), "multiply" in proxy.system.listMethods())
    server.shutdown()
