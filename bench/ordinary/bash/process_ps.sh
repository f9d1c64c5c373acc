#!/bin/bash
# ps, pgrep, /proc, nice, nohup, kill -0.
sleep 30 & p=$!
ps -o comm= -p $p; pgrep -P $$ sleep >/dev/null && echo found; tr '\0' ' ' </proc/$p/cmdline; echo
kill -0 $p && echo alive; [ "$(readlink /proc/$$/cwd)" = "$PWD" ] && echo cwd; kill $p; wait $p; kill -0 $p 2>/dev/null || echo dead
[ "$(nice)" -le "$(nice -n 5 nice)" ] && echo nicer; nohup echo out >n 2>/dev/null; cat n; ps aux | grep -q '[b]ash' && echo listed
