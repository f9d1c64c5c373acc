#!/bin/bash
# set -euo pipefail, and what it stops.
bash -euo pipefail -c 'echo a; false; echo b'; echo $?
bash -euo pipefail -c 'echo $undefined' 2>/dev/null; echo $?
bash -euo pipefail -c 'false | true; echo c'; echo $?
bash -c 'cmd_that_is_not_there' 2>/dev/null; echo $?; touch plain; ./plain 2>/dev/null; echo $?; bash -c 'kill -9 $$'; echo $?
bash -n <<<'if true' 2>/dev/null || echo syntax
