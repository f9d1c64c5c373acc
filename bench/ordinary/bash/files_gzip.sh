#!/bin/bash
# gzip, zcat, bzip2, xz, base64, checksums.
set -eu
seq 1 1000 >n; sha256sum n | tee n.sum | cut -c1-16
gzip -k n; zcat n.gz | tail -1; gzip -t n.gz && echo good
xz -k n; xz -dc n.xz | cmp - n && echo same
base64 <<<hello | base64 -d; sha256sum -c n.sum; md5sum <n | cut -c1-8; cksum <n
