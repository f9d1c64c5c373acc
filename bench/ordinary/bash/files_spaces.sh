#!/bin/bash
# Names with blanks, quotes, newlines and dashes.
set -eu
touch -- "a b" "it's" -dash $'new\nline' 'ünï'
for f in *; do printf '%q\n' "$f"; done | LC_ALL=C sort
rm -- -dash; ls | wc -l; find . -type f -print0 | tr -dc '\0' | wc -c
