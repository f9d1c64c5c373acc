#!/bin/bash
# A web server in the background, asked with bash's own sockets.
set -eu
echo '<h1>hi</h1>' >index.html
python3 -u -m http.server 0 --bind 127.0.0.1 >log 2>/dev/null & server=$!
for _ in $(seq 100); do port=$(sed -n 's/.*port \([0-9]*\).*/\1/p' log); [ -n "$port" ] && break; sleep 0.05; done
exec 3<>/dev/tcp/127.0.0.1/$port; printf 'GET / HTTP/1.0\r\n\r\n' >&3; tail -1 <&3; exec 3>&-
kill $server; wait $server 2>/dev/null || echo stopped
