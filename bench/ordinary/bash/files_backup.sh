#!/bin/bash
# A backup that is rotated, with a manifest that is checked.
set -euo pipefail
mkdir src; for i in 1 2 3; do echo "file $i" >src/$i.txt; done
backup() { local n=2; while ((n > 0)); do [ -f b.$n.tgz ] && mv b.$n.tgz b.$((n + 1)).tgz; n=$((n - 1)); done; tar czf b.1.tgz -C src .; }
backup; echo changed >src/2.txt; backup; rm src/3.txt; backup
ls b.*; for b in b.*.tgz; do tar tzf $b | grep -c txt; done
(cd src && sha1sum * >../manifest); (cd src && sha1sum --quiet -c ../manifest) && echo intact
tar xzOf b.2.tgz ./2.txt
