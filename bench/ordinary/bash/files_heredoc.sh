#!/bin/bash
# Here-documents and redirections.
set -eu
x=5
cat <<END >f
x is $x and $((x * 2))
END
cat f - <<'END'
$x is not expanded
END
{ echo out; echo err >&2; } >both 2>&1; cat both; exec 3>three; echo through >&3; exec 3>&-; cat three
: >f; [ -s f ] || echo empty; set -o noclobber; (echo x >f) 2>/dev/null || echo kept
