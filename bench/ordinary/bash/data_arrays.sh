#!/bin/bash
# Arrays and associative arrays.
a=(one "two words" three); a+=(four); echo "${#a[@]} ${a[1]} ${a[-1]}"; for i in "${!a[@]}"; do echo "$i=${a[i]}"; done
declare -A m=([x]=1 [y]=2); m[z]=3; for k in $(printf '%s\n' "${!m[@]}" | sort); do echo "$k ${m[$k]}"; done; unset 'a[0]'; echo "${a[@]:1:2}"
mapfile -t lines < <(seq 3); echo "${lines[*]}"; [[ -v m[x] ]] && echo has; s=$(IFS=,; echo "${lines[*]}"); echo "$s"
