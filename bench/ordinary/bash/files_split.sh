#!/bin/bash
# split, cat, dd, od, truncate, fallocate, head, tail.
set -eu
seq 100 >n; split -l 30 n part.; ls part.*; cat part.* | cmp - n && echo whole
dd if=/dev/zero of=z bs=1k count=4 status=none; wc -c <z; printf 'AB\0' | od -An -tx1
truncate -s 1M sparse; [ "$(du -k sparse | cut -f1)" -lt 100 ] && echo sparse; fallocate -l 64K full; stat -c %s full
tail -n +98 n; head -c 5 n | tr '\n' ' '; echo; tail -f n --pid=$$ -n1 & sleep 0.2; kill $!; wait $! 2>/dev/null || true
