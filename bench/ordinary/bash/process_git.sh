#!/bin/bash
# git: branch, conflict, stash, rebase, bare remote, clone.
set -eu
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b.c GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b.c
git init -qb main r; cd r; echo 1 >f; git add f; git commit -qm one
git checkout -qb topic; echo 2 >f; git commit -qam two; git checkout -q main; echo 3 >f; git commit -qam three
git merge topic >/dev/null 2>&1 || { grep -c '^[<=>]' f; echo 23 >f; git add f; git commit -qm merged; }
git log --format=%s | sort; echo dirty >>f; git stash -q; cat f; git stash pop -q; tail -1 f; git checkout -q f
git init -q --bare ../remote.git; git remote add origin ../remote.git; git push -q origin main
git clone -q ../remote.git ../copy 2>/dev/null; git -C ../copy log --oneline | wc -l; git blame -s f | wc -l
