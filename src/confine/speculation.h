/* What the processor may guess on behalf of a box, and what it leaves in its caches: the controls
 * of prctl(2) PR_SET_SPECULATION_CTRL (the kernel's Documentation/userspace-api/spec_ctrl.rst).
 *
 * A filter alone changes nothing here since Linux 5.16: before, each process under seccomp had
 * these mitigations; now only who asks for them has. */
#pragma once

#include <stdbool.h>

#include "base/err.h"

enum speculation_control {
	SPECULATION_STORE_BYPASS,
	SPECULATION_INDIRECT_BRANCH,
	SPECULATION_L1D_FLUSH,
	SPECULATION_CONTROLS
};

enum speculation_state {
	SPECULATION_ABSENT,	/* the processor is affected, and nothing of ours can be done */
	SPECULATION_UNAFFECTED, /* the processor does not have the weakness */
	SPECULATION_BY_HOST,	/* mitigated for every process, ours included */
	SPECULATION_BY_PROCESS, /* each process can ask for it: speculation_restrict() */
};

struct speculation_host {
	enum speculation_state state[SPECULATION_CONTROLS];
};

/* What the kernel says of the calling process; a handful of system calls, nothing is changed.
 * PALE_E_SYSTEM: it could not be asked now, which is not to be taken for what the host lacks. */
int speculation_probe(struct speculation_host *ret, struct pale_err *err) _must_check_;

/* "store bypass": for messages. */
const char *speculation_name(enum speculation_control c);
/* Why it cannot be had, and the remedy; for SPECULATION_ABSENT. */
const char *speculation_remedy(enum speculation_control c);

/* Asks for the controls whose bits (1 << c) are set: for the calling process and all that it starts
 * and executes. The first two cannot be taken back by anybody. Needs no privilege.
 * Async-signal-safe. */
int speculation_restrict(unsigned controls, struct pale_err *err) _must_check_;
