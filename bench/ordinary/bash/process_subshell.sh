#!/bin/bash
# Subshells, exported variables, functions, exec.
x=1; (x=2; cd /; echo $x $PWD); echo $x; export y=3; bash -c 'echo $y'
f() { local x=9; echo "$x $*"; return 4; }; f a b; echo $? $x
export -f f; bash -c 'f c'; { x=5; }; echo $x; out=$(echo in; exit 6); echo "$out $?"
bash -c 'exec -a name sh -c "echo \$0"'; env -i A=1 env; echo $BASH_SUBSHELL $(echo $BASH_SUBSHELL)
