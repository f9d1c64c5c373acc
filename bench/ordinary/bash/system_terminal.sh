#!/bin/bash
# No terminal on standard input; a terminal of script's.
[ -t 0 ] || echo 'no terminal'; tty; read -r x || echo 'no input'; tput -T xterm cols >/dev/null && echo tput
script -qec 'test -t 1 && echo terminal' /dev/null </dev/null | tr -d '\r'; stty 2>/dev/null || echo 'no stty'; echo ${TERM:+term} ${COLUMNS:-none} >/dev/null
