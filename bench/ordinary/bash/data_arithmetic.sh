#!/bin/bash
# Numbers.
echo $((7 / 2)) $((7 % 3)) $((2 ** 40)) $((0xff + 010)) $((5 > 3 ? 1 : 0)); i=5; ((i += 3, i *= 2)); echo $i; let j=i-1; echo $j
f() { if (($1 < 2)); then echo 1; else echo $(($1 * $(f $(($1 - 1))))); fi; }; f 10; for ((k = 0; k < 3; k++)); do printf '%d ' $k; done; echo
awk 'BEGIN { printf "%.6f %d\n", atan2(1, 1) * 4, 2 ^ 31 }'; printf '%.2f\n' 2.345; echo $((RANDOM >= 0)); seq -s, 1 2 9; echo {a..e} {01..03}
