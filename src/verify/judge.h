/* What the attempts say about the promises of a plan. */
#pragma once

#include <jansson.h>

#include "verify/corpus.h"
#include "verify/host.h"

/* What the policy promises, and what it lets be. */
struct promised {
	json_t *promises; /* of the plan: [{axis, promise, what, mechanism, ...}] */
	bool network, nested, strict, watch_all, watch_writes;
	bool quota; /* limits.cpus is kept by a control group */
};

/* Is the attack aimed at a promise, and not at what the policy permits? */
bool judge_promised(const struct promised *p, const struct attempt *a);
/* Is this promised, and nothing less in its place? */
bool judge_as_asked(const struct promised *p, const char *axis, const char *promise);
/* Sets `logged` of each by the log of their run. PALE_E_AUDIT: it does not verify. */
int judge_log(struct attempt **attempts, size_t n, const char *run,
	      struct pale_err *err) _must_check_;
/* What the host saw, when all is over, and where no event is promised. */
void judge_host(struct corpus *c, const struct host_side *host, const struct promised *p);
/* Which promise an attempt that is not in the log breaks: "axis.key", its own or that of events. */
bool judge_breaks(const struct attempt *a, const char *axis, const char *promise, bool *ret_log);
