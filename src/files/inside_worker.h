/* The worker in a running box: see inside_worker.c. */
#pragma once

#include "isolation/isolation.h"

struct inside_worker {
	const struct box *box;
	const struct plan *plan;
	const struct cgroup
		*join; /* the box's groups, where they are joined from inside; or NULL */
	int socket, memory;
	pid_t parent;
	bool keeper; /* it is the keeper, which has more to read (keeper.h) */
};

/* In a fork of the supervisor. */
_Noreturn void inside_worker(const struct inside_worker *w);
