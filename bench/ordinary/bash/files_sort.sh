#!/bin/bash
# sort, uniq, cut, paste, join, comm, tr, wc.
set -eu
printf '%s\n' 10 9 2 33 2 >n; sort -n n | uniq -c | sort -rn | awk '{print $1, $2}' | head -1
printf 'a,1\nb,2\n' | cut -d, -f2 | paste -sd+ ; printf '1 x\n2 y\n' >l; printf '1 p\n2 q\n' >r; join l r
comm -12 <(sort n | uniq) <(printf '2\n33\n7\n'); echo hello | tr a-y b-z | rev; wc -l <n
sort -t, -k2,2r <<<$'a,1\nb,2'; seq 5 | tac | nl -w2; printf 'b\na\n' | LC_ALL=C sort -c 2>/dev/null || echo unsorted
