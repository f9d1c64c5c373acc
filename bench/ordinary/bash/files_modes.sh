#!/bin/bash
# umask, chmod, test operators.
set -eu
umask 077; touch f; stat -c %a f; chmod u+x,g=r f; stat -c '%A' f
[ -x f ] && [ -s f ] || echo 'empty or not executable'
printf '#!/bin/sh\necho ran "$@"\n' >f; ./f a b; mkdir d; chmod 1777 d; stat -c %a d; rmdir d
