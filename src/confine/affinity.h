/* The processors that a box may run on, and in which order of precedence. */
#pragma once

#include <sched.h>
#include <sys/types.h>

#include "base/err.h"

/* The processors that the calling process may run on. */
int affinity_get(cpu_set_t *ret, struct pale_err *err) _must_check_;

/* Has a process that was just made run on another processor than we do. The scheduler tends to
 * leave it where it was made, and there it waits until we do, with a processor idle beside us. Only
 * a matter of time: what cannot be had is not missed. Async-signal-safe. */
void affinity_spread(pid_t pid, const cpu_set_t *allowed);

/* Lets the calling process, and what it starts, run on `count` of the allowed processors; first on
 * the one it is on, which the scheduler chose, so that boxes do not crowd on the first. Never in
 * real time. Async-signal-safe. */
int affinity_narrow(unsigned count, const cpu_set_t *allowed, struct pale_err *err) _must_check_;
