/* Retention: whole old runs are removed, oldest first; never a live one, never one whose changes
 * nobody applied or discarded (unless forced). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "audit/audit.h"

#define AUDIT_MAX_BYTES (UINT64_C(1) << 30)

struct audit_prune {
	uint64_t max_bytes; /* all runs together; 0: no limit */
	const char *before; /* a time as in logs: older runs go; NULL: none for their age */
	bool dry_run, force;
	/* told for each run that goes (or would); may be NULL */
	void (*each)(void *arg, const char *id, uint64_t bytes);
	void *arg;
};

struct audit_pruned {
	uint64_t runs, bytes; /* removed */
	uint64_t kept_runs, kept_bytes;
	char path[4096];	  /* the state directory that it was done in */
	uint64_t unapplied, live; /* runs that would have gone, and why they did not */
};

int audit_prune(const struct audit_prune *how, struct audit_pruned *ret,
		struct pale_err *err) _must_check_;

/* The automatic one, with AUDIT_MAX_BYTES: does nothing but one stat() if it was done within a day.
 * For the end of a command; what fails is left for the next time. */
void audit_prune_daily(void);
