#!/bin/bash
# Dates and their arithmetic.
export LC_ALL=C.UTF-8
date -u -d @0 +%FT%TZ; date -u -d '2024-02-28 + 2 days' '+%A %d %B'; TZ=Asia/Tokyo date -d '2024-01-01 00:00 UTC' +%H:%M
a=$(date -u -d 2024-12-25 +%s); b=$(date -u -d 2024-01-01 +%s); echo $(((a - b) / 86400)); [ "$(date +%Y)" -ge 2024 ] && echo now
printf '%(%Y)T\n' 0 | grep -q '19[67]' && echo epoch; SECONDS=0; sleep 0.1; [ $SECONDS -le 5 ] && echo slept
