/* A pool: a process that holds boxes of one policy ready, each with its kernel started and never
 * used, for whoever asks for a session with that policy.
 *
 * Each box has a supervisor of its own already, a fork of the pool's process: what a box costs that
 * is the same for all of them (the plan, the program's own start) is paid once. A box is handed out
 * once, and is then its owner's like any other; the pool knows it no more. */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "plan/plan.h"
#include "supervise/supervise.h"

#define POOL_SIZE_MAX 256
#define POOL_KEY_SIZE 65 /* SHA-256 in hex: what a box of the pool may be used for */

struct pool_request {
	const char *key;	 /* by which it is found; borrowed, like all of this */
	const char *name;	 /* of the policy, for people */
	const struct plan *plan; /* of a session */
	unsigned size;		 /* boxes that are held ready */
	supervise_start *start;	 /* as in struct supervise_request */
	void *start_arg;
	json_t *const *notes;
	void (*ready)(void *arg); /* all of them are ready, for the first time */
	void *arg;
};

/* Serves until it is told to stop, or cannot make a box. PALE_E_CONFLICT: there is such a pool;
 * PALE_E_POLICY: boxes of this policy cannot be made ahead. In a forked supervisor it returns 1
 * when the box has ended: the caller then ends the process. */
int pool_run(const struct pool_request *req, struct pale_err *err) _must_check_;

/* Can boxes of this policy be made before they are asked for? PALE_E_POLICY, and why not: they
 * would show files, or hold secrets, as they were then. */
int pool_possible(const struct policy *p, struct pale_err *err) _must_check_;
/* The key of a policy for this caller: the policy itself, what its toolchain is found by, this
 * version. env: the caller's. */
int pool_key(const struct policy *p, char *const *env, char ret[static POOL_KEY_SIZE],
	     struct pale_err *err) _must_check_;
/* A connection to the pool with this key; PALE_E_NOTFOUND: there is none. */
int pool_connect(const char *key, struct pale_err *err) _must_check_;
/* The keys of all pools, each 64 digits; for the caller to free. */
int pool_list(char (**ret)[POOL_KEY_SIZE], size_t *ret_n, struct pale_err *err) _must_check_;
