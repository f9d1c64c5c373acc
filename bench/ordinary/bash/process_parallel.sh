#!/bin/bash
# A pool of background jobs with a limit, their results collected in order.
set -u
work() { sleep 0.0$((RANDOM % 5)); echo "job $1 squared is $(($1 * $1))" >out.$1; return $(($1 % 3 == 0)); }
running=0 failed=0
for i in 1 2 3 4 5 6; do
	((running >= 3)) && { wait -n || ((failed++)); ((running--)); }
	work $i & ((running++))
done
while ((running > 0)); do wait -n || ((failed++)); ((running--)); done
cat out.*; echo "$failed failed"
