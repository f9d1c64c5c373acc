#!/bin/bash
# A sieve, a calendar of squares, text of a file counted.
n=300; for ((i = 2; i <= n; i++)); do [[ ${c[i]-} ]] && continue; p+=($i); for ((j = i * i; j <= n; j += i)); do c[j]=1; done; done; echo ${#p[@]} ${p[-1]}
for i in {1..3}; do for j in {1..3}; do printf '%3d' $((i * j)); done; echo; done; tr -cs 'a-z' '\n' <<<'the cat the dog the end' | sort | uniq -c | sort -rn | awk 'NR == 1 {print $2, $1}'; factor 360
