#!/bin/bash
# Cutting and replacing in strings.
f=/path/to/file.tar.gz; echo "${f##*/} ${f%.*} ${f%%.*} ${f/path/p} ${#f} ${f:6:2} ${f: -2}"
s='a,b;c'; IFS=',;' read -ra p <<<"$s"; echo "${#p[@]} ${p[2]}"; echo "${u:-default} ${u:=set} $u ${u:+yes}"; echo "${s//[,;]/-}" "${s^}" "${s@Q}"
[[ abc123 =~ ^([a-z]+)([0-9]+)$ ]] && echo "${BASH_REMATCH[1]} ${BASH_REMATCH[2]}"; [[ file.txt == *.txt ]] && echo glob; printf '%-5s|%5s|%05d|%x\n' a b 7 255
