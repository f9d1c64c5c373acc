#!/bin/bash
# Traps on EXIT, ERR, and signals.
trap 'echo usr1' USR1; kill -USR1 $$
bash -c 'trap "echo bye" EXIT; exit 3'; echo $?
bash -c 'set -E; trap "echo failed in line \$LINENO" ERR; false; true'
bash -c 'trap "" TERM; kill -TERM $$; echo survived'
bash -c 'trap "echo int; exit 130" INT; kill -INT $$; sleep 5'; echo $?
