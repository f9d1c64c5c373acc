/* Stopping all of a box where it stands, and letting it go on. */
#pragma once

#include "base/err.h"

struct run;

/* Stops it, or lets it go on. 0: done; 1: what is in the middle of a system call stops when that
 * returns, ask freeze_done(). */
int freeze_set(struct run *run, bool freeze, struct pale_err *err) _must_check_;
/* Does all of it stand? */
bool freeze_done(struct run *run);
/* The box is being ended: what was killed is let go on, for else it could not die. Also where
 * nothing is frozen. */
void freeze_end(struct run *run);
