#!/bin/bash
# mktemp and a trap that cleans up.
set -eu
bash -c 'd=$(mktemp -d); trap "rm -rf $d" EXIT; echo data >$d/f; cat $d/f; echo $d >name'
[ ! -e "$(cat name)" ] && echo gone
f=$(mktemp -t pre.XXXXXX); stat -c '%a %s' "$f"; rm "$f"
f=$(mktemp ./here.XXX); [ -f "$f" ] && echo here
