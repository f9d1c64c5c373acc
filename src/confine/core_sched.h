/* Core scheduling: while a process of the box runs on one thread of a processor's core, nothing but
 * the box runs on the core's other threads (the kernel's
 * Documentation/admin-guide/hw-vuln/core-scheduling.rst). */
#pragma once

#include <stdbool.h>

#include "base/err.h"

enum core_sched_state {
	CORE_SCHED_ABSENT,     /* the kernel lacks it, and cores have threads that run at a time */
	CORE_SCHED_NO_THREADS, /* each core runs one thread at a time: there is nobody to keep off
				*/
	CORE_SCHED_OFFERED,
};

/* Whether a core may run two threads at a time: not known not to. 0, or a negative errno: it could
 * not be looked at now. */
int core_sched_siblings_run(bool *ret) _must_check_;
/* A look at this host; nothing is changed. PALE_E_SYSTEM: it could not be looked at now, which is
 * not to be taken for what it lacks. */
int core_sched_probe(enum core_sched_state *ret, struct pale_err *err) _must_check_;

/* Gives the calling thread a cookie that nobody else has, and that all it starts will have. It
 * cannot be given up without the same call, which the filter refuses. Needs no privilege.
 * Async-signal-safe. */
int core_sched_separate(struct pale_err *err) _must_check_;
