/* What of the host the attacks are after: pale-attacks puts it up (attacks/host.c). */
#pragma once

#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

#define HOST_TARGETS 64

struct host_side {
	pid_t pid;
	int in, out;
	struct buf text;
	char *targets[HOST_TARGETS]; /* "KEY=VALUE"; in text */
	size_t ntargets;
	struct buf after; /* what it says at its end */
};

/* In this directory, which is empty. */
int host_start(struct host_side *ret, const char *program, const char *dir,
	       struct pale_err *err) _must_check_;
/* Takes it down, and hears what was reached or changed. */
int host_stop(struct host_side *h, struct pale_err *err) _must_check_;
/* After host_stop(): did it see this ("overlay-written")? */
bool host_saw(const struct host_side *h, const char *what);
void host_done(struct host_side *h);
#define _cleanup_host_ _cleanup_(host_done)
