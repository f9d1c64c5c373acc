#!/bin/bash
# A service behind a Unix socket, and one behind a port, written with a line of Python each.
set -u
python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.bind("u"); s.listen(); c, _ = s.accept(); c.sendall(c.recv(99).upper())' & a=$!
until [ -S u ]; do sleep 0.02; done
python3 -c 'import socket, time
s = socket.socket(socket.AF_UNIX)
for _ in range(100):
    try: s.connect("u"); break
    except OSError: time.sleep(0.02)
s.sendall(b"hello"); print(s.recv(99).decode())'
wait $a; echo "status $?"
