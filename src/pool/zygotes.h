/* The zygote of a pool: started, replaced by another after so many boxes or when it has ended, done
 * without where it cannot be had. */
#pragma once

#include <poll.h>

#include "isolation/zygote.h"

struct zygotes {
	const struct plan *plan;
	struct zygote *now, *next; /* `next` is importing */
	uint64_t forks;		   /* of `now` */
	unsigned failures;
	bool none;	     /* boxes start their kernels themselves */
	struct pale_err why; /* then */
};

/* Starts what is missing. */
void zygotes_tend(struct zygotes *z);
/* Can boxes be made? With z->now, if that is not NULL. */
bool zygotes_ready(const struct zygotes *z);
/* What to poll: two descriptors, -1 where there is none; and what came of it. */
void zygotes_fds(const struct zygotes *z, struct pollfd fds[static 2]);
/* True: `now` has died. */
bool zygotes_hear(struct zygotes *z, const struct pollfd fds[static 2]);
void zygotes_done(struct zygotes *z);
