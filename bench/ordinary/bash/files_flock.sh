#!/bin/bash
# flock: only one at a time.
set -eu
exec 9>lock
flock 9
flock -n lock -c 'echo got it' || echo taken
flock -u 9
flock -n lock -c 'echo got it'
for i in 1 2 3 4; do ( flock 9; n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) >n ) 9>lock2 & done; wait; cat n
