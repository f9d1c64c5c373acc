#!/bin/bash
# ln, readlink, realpath, stat, cp -a, install.
set -eu
mkdir -p real/sub; echo x >real/sub/f; ln -s real link; ln real/sub/f hard
readlink link; realpath --relative-to=. link/sub; stat -c %h hard
cp -a link copied; [ -L copied ] && echo link; cp -rL link deep; [ -d deep/sub ] && echo directory
install -D -m 640 hard i/j/k; stat -c %a i/j/k; touch -d '2020-01-01 00:00 UTC' hard; stat -c %Y hard
[ real/sub/f -ef hard ] && echo same file
