/* The index of all runs: SQLite beside the logs, for lists. It holds nothing that is not in the
 * logs, is brought up to date from them whenever it is opened (a log whose size, time or inode
 * changed is read again), and is made anew if it is damaged or from another version. A run never
 * touches it. */
#pragma once

#include <stdint.h>

#include "audit/audit.h"

struct audit_index;

/* rebuild: forget what it holds and read all logs. */
int audit_index_open(bool rebuild, struct audit_index **ret, struct pale_err *err) _must_check_;
void audit_index_free(struct audit_index *ix);

struct audit_filter {
	const char *since;   /* a time as in the log; runs started then or later; NULL: all */
	const char *outcome; /* NULL: any */
	const char *event;   /* has at least one of these; NULL: any */
	const char *session; /* a session of this name; NULL: any run */
	size_t limit;	     /* 0: all */
};

/* One run; texts are hostile, NULL where the log does not say. */
struct audit_row {
	const char *id, *started, *ended, *outcome, *command, *policy, *user, *damaged;
	int64_t status, wall_ms; /* -1: unknown */
	uint64_t blocked, limits, errors, lines, bytes;
	bool unapplied; /* changes are kept that nobody applied or discarded */
	bool live, lost;
	const char *session; /* its name */
};

/* Newest first. fn returns other than 0 to stop; that is then returned. */
typedef int audit_row_fn(void *arg, const struct audit_row *row);
int audit_index_query(struct audit_index *ix, const struct audit_filter *f, audit_row_fn *fn,
		      void *arg, struct pale_err *err) _must_check_;
