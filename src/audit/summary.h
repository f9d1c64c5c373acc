/* One run in short, from its log. */
#pragma once

#include <stdint.h>

#include "audit/audit.h"
#include "audit/events.h"

struct run_summary {
	char started[40], ended[40];
	char outcome[64]; /* empty: no end */
	char policy[128], user[64];
	char session[65];	 /* its name; empty: it has none, or is no session */
	char *command;		 /* in one line; may be NULL */
	char damaged[128];	 /* why the rest of the log could not be read; empty: it could */
	int64_t status, wall_ms; /* -1: the log does not say */
	uint64_t by_severity[4]; /* attempts, with the counts of those that were left out */
	uint64_t lines;
	bool unapplied;
	struct {
		char name[65];
		uint64_t n;
	} events[128]; /* distinct names; beyond that they are not counted */
	size_t nevents;
};

/* Reads a log (hostile). 0 also if it is damaged: see damaged. */
int run_summarize(int log_fd, struct run_summary *ret, struct pale_err *err) _must_check_;
void run_summary_done(struct run_summary *r);
