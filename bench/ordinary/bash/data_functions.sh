#!/bin/bash
# Functions that return, recurse, take names, and a stack.
hanoi() { (($1 == 0)) && return; hanoi $(($1 - 1)) "$2" "$4" "$3"; echo "$2>$3"; hanoi $(($1 - 1)) "$4" "$3" "$2"; }
hanoi 3 a c b | paste -sd' '; set_it() { local -n r=$1; r=$2; }; set_it v 42; echo $v; max() { printf '%s\n' "$@" | sort -n | tail -1; }; max 3 9 4
caller_of() { echo "${FUNCNAME[1]}"; }; g() { caller_of; }; g; s=(); s+=(1); s+=(2); unset 's[-1]'; echo "${s[@]}"; type -t g; command -v max
