#!/bin/bash
# diff, patch, cmp.
set -eu
printf 'a\nb\nc\n' >old; printf 'a\nB\nc\nd\n' >new
diff -u --label old --label new old new >p || true; cat p
patch -s old <p 2>/dev/null && cmp old new && echo patched
