#!/bin/bash
# sed in place, ranges, groups.
set -eu
printf '%s\n' 'name = old' '# note' 'port = 80' 'end' >conf
sed -i.bak 's/old/new/; /^#/d' conf
cat conf; diff conf.bak conf || true
sed -n '/port/,/end/p' conf.bak
sed -E 's/([a-z]+) = (.*)/\2 -> \1/' conf | tr a-z A-Z
