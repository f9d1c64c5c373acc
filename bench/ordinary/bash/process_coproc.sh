#!/bin/bash
# A coprocess.
coproc CALC { while read -r a b; do echo $((a * b)); done; }
echo 6 7 >&"${CALC[1]}"; read -r r <&"${CALC[0]}"; echo "$r"
eval "exec ${CALC[1]}>&-"; wait; echo ended
