#!/bin/bash
# Process substitution and tee.
diff <(seq 3) <(printf '1\n2\n4\n'); echo $?
seq 5 | tee >(wc -l >count) >/dev/null; sleep 0.2; cat count
while read -r a b; do echo "$b $a"; done < <(paste <(seq 2) <(printf 'x\ny\n'))
cat <(echo one) <(echo two) | sort -r
