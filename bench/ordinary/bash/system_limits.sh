#!/bin/bash
# ulimit.
ulimit -n | grep -q '[0-9]' && echo files; (ulimit -n 16; exec 3</dev/null; ulimit -n)
(ulimit -f 1; trap '' XFSZ; head -c 100000 /dev/zero >big 2>/dev/null; stat -c %s big); (ulimit -t 1; while :; do :; done) 2>/dev/null; echo $?
ulimit -c
