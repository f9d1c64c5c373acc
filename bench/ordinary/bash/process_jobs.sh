#!/bin/bash
# Background jobs, wait, exit statuses.
for i in 3 1 2; do (sleep 0.0$i; exit $i) & pids="$pids $!"; done
for p in $pids; do wait $p; echo "status $?"; done
sleep 30 & kill $!; wait $!; echo $?
(exit 7) | cat; echo "${PIPESTATUS[@]}"; jobs | wc -l
