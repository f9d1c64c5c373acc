# python -m http.server as a program of its own, asked until it is up.
import subprocess
import sys
import time
import urllib.request

with open("index.html", "w") as f:
    f.write("<h1>hi</h1>")
server = subprocess.Popen([sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
port = server.stdout.readline().split("port ")[1].split()[0]
for _ in range(100):
    try:
        print(urllib.request.urlopen(f"http://127.0.0.1:{port}/").read())
        break
    except OSError:
        time.sleep(0.05)
server.terminate()
print(server.wait())
