#!/bin/bash
# timeout, and what it leaves.
timeout 0.1 sleep 30; echo $?
timeout -s KILL 0.1 sleep 30; echo $?
timeout 5 true && echo in time
read -t 0.1 -r x < <(sleep 1); echo $?
