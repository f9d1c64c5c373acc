#!/bin/bash
# awk: sums by group, fields, formats.
set -eu
printf '%s\n' 'ann 3 x' 'bob 4 y' 'ann 5 x' >d
awk '{ s[$1] += $2 } END { for (k in s) print k, s[k] }' d | sort
awk -F: 'BEGIN { OFS="-" } { $1 = $1; print NF, $0 }' <<<'a:b:c'
awk 'NR > 1 && $3 == "y" { printf "%05.2f|%s\n", $2 / 3, toupper($1) }' d
