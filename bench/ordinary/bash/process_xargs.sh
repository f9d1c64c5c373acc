#!/bin/bash
# xargs, some at a time.
set -eu
seq 6 | xargs -n2 echo; seq 4 | xargs -P4 -I{} sh -c 'sleep 0.0{}; echo {}' | sort
printf 'a b\0c' | xargs -0 -n1 printf '<%s>\n'; echo | xargs -r echo nothing; seq 3 | xargs -I{} echo {}x
