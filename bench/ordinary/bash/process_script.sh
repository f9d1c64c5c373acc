#!/bin/bash
# A script with getopts, run by its own name.
cat >tool <<'END'
#!/usr/bin/env bash
while getopts 'vn:' o; do case $o in v) v=1 ;; n) n=$OPTARG ;; *) exit 2 ;; esac; done
shift $((OPTIND - 1)); echo "v=${v:-0} n=${n:-none} rest=$*"
END
chmod +x tool; ./tool -v -n 3 a b; ./tool; ./tool -x 2>/dev/null; echo $?; PATH=.:$PATH; tool c
