/* The processors that a box may run on, and in which order of precedence. */
#pragma once

#include "base/err.h"

/* Lets the calling process, and what it starts, run on `count` of the processors it may run on now;
 * which ones differs from box to box, so that they do not crowd on the first. Never in real time.
 * Async-signal-safe. */
int affinity_narrow(unsigned count, unsigned seed, struct pale_err *err) _must_check_;
