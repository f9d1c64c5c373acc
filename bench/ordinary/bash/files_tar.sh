#!/bin/bash
# tar with gzip and xz, and its listing.
set -eu
mkdir d; echo one >d/1; echo two >d/2; ln -s 1 d/link; chmod 750 d/2
tar czf a.tar.gz d; tar cJf a.tar.xz d
tar tzf a.tar.gz | sort
mkdir out; tar xf a.tar.xz -C out; cat out/d/link; stat -c %a out/d/2
tar cf - d | (cd out; mkdir again; tar xf - -C again); diff -r d out/again/d && echo same
