#!/bin/bash
# A report from a CSV file.
set -eu
cat >s.csv <<'END'
date,city,amount
2024-01-02,Oslo,5.5
2024-01-01,Rome,7
2024-01-02,Rome,1.25
END
tail -n +2 s.csv | sort -t, -k1,1 -k3,3nr | while IFS=, read -r d c a; do printf '%-10s %-5s %6.2f\n' "$d" "$c" "$a"; done
awk -F, 'NR > 1 { t[$2] += $3; n[$2]++ } END { for (c in t) printf "%s %.2f %.2f\n", c, t[c], t[c] / n[c] }' s.csv | sort; cut -d, -f2 s.csv | sort -u | column
