#!/bin/bash
# Other interpreters from a script.
set -eu
python3 - a b <<'END'
import sys; print(sys.argv[1:])
END
echo '{"a": [1, 2]}' | python3 -c 'import json, sys; print(json.load(sys.stdin)["a"][1])'
perl -ne 'print if s/b/B/' <<<$'abc\nxyz'; node -e 'console.log(process.argv.length)' x; python3 -m json.tool --compact <<<'{"k": 1}'
