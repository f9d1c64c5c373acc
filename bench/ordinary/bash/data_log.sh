#!/bin/bash
# The ten lines that everybody writes for a log.
set -eu
for i in $(seq 200); do echo "10.0.0.$((i % 7)) GET /page$((i % 3)) $((i % 10 ? 200 : 500))"; done >log
cut -d' ' -f1 log | sort | uniq -c | sort -k1,1rn -k2 | head -3 | awk '{print $1, $2}'; grep -c ' 500$' log; grep -oE '/page[0-9]' log | sort | uniq -c | awk '{print $2, $1}'
awk '$4 == 500 { e[$3]++ } END { for (p in e) print p, e[p] }' log | sort; grep -n -m1 500 log; grep -v 200 log | tail -1; grep -A1 -B1 -n 'page0 500' log | head -3
