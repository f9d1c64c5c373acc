#!/bin/bash
# Long pipes, a reader that ends early, big data.
set -u
yes | head -n 100000 | wc -l; yes 2>/dev/null | head -1; echo "${PIPESTATUS[0]}"
seq 1000000 | sort -rn | tail -1; head -c 20000000 /dev/zero | gzip | zcat | wc -c
cat /dev/null | wc -c; printf 'x%.0s' {1..1000} | fold -w 100 | wc -l
