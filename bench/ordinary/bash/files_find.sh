#!/bin/bash
# find with names, sizes, -exec, -print0 and xargs.
set -eu
mkdir -p t/{a,b}/{c,d}; touch t/a/c/{1,2}.log t/b/d/3.txt "t/b/with blank.log"
head -c 5000 /dev/zero >t/a/big.log
find t -name '*.log' | sort
find t -type f -size +4k
find t -name '*.log' -print0 | xargs -0 -n1 basename | sort
find t -name '*.txt' -exec sh -c 'echo "found $1"' _ {} \;
find t -type d -empty | sort; find t -name '*.log' -delete; find t -type f
