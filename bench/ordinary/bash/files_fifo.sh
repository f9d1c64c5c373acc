#!/bin/bash
# A named pipe.
set -eu
mkfifo p; (seq 3 >p) & while read -r n; do echo "got $n"; done <p; wait; [ -p p ] && echo fifo
