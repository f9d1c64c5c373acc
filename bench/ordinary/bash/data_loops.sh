#!/bin/bash
# Loops, cases, select, break and continue.
n=0; while :; do ((++n == 2)) && continue; ((n > 4)) && break; echo $n; done; until ((n == 0)); do ((n--)); done; echo $n
for x in apple 42 ''; do case $x in [0-9]*) echo number ;; '') echo empty ;; a*) echo "a word" ;;& *) echo any ;; esac; done
while IFS=: read -r a _ c; do echo "$a $c"; done <<<$'1:2:3\n4:5:6'; select x in p q; do echo "chose $x"; break; done <<<2 2>/dev/null
