#!/bin/bash
# Devices and descriptors by name.
echo x >/dev/null; head -c 3 /dev/zero | od -An -tx1; [ "$(head -c 8 /dev/urandom | wc -c)" = 8 ] && echo random
echo a >/dev/full 2>/dev/null || echo full; { echo out >/dev/stdout; echo err >/dev/stderr; } 2>&1 | cat; cat /dev/fd/3 3<<<three; ls /dev/shm >/dev/null && echo shm
[ -c /dev/tty ] && echo tty; [ -d /dev/pts ] && echo pts
