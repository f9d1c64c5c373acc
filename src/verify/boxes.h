/* The boxes in which the attacks are tried: harmless ones together, others in one each, several
 * boxes at a time. */
#pragma once

#include <pale.h>

#include "verify/corpus.h"
#include "verify/host.h"

/* One box. */
struct job {
	struct pale_policy *policy;
	struct attempt **attempts;
	size_t n;
	uint64_t max; /* the limit that is exceeded; 0: none is */
	bool files;   /* it has files of verify's own: VERIFY_READ and so on */
};

struct jobs {
	const struct corpus *corpus;
	const struct host_side *host;
	const char *dir;		/* the caller's working directory is none of theirs */
	char allowed[300], denied[300]; /* "allowed=HOST", of the policy's rules; or "" */
	bool quota;			/* limits.cpus is kept by a control group */
	struct job *list;
	size_t n;
	unsigned parallel;
	/* Told of each box that has ended; not 0: enough. May be NULL. */
	int (*progress)(void *arg, size_t done, size_t all);
	void *arg;
};

/* Runs them all and notes in each attempt what became of it, and whether the log has it. */
int jobs_run(struct jobs *jobs, struct pale_err *err) _must_check_;
