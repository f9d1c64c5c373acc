#!/bin/bash
# Locales and characters.
export LC_ALL=C.UTF-8; x='naïve €'; echo ${#x} ${x^^}; printf '%s' "$x" | wc -m; printf '%s' "$x" | wc -c; LC_ALL=C; echo ${#x}
locale -a | grep -qi '^c.utf' && echo there; printf 'é' | iconv -f utf8 -t latin1 | od -An -tx1; printf '\u00e9\n'
