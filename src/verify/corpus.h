/* The attacks, as the program pale-attacks tells of them (attacks/attack.h), and what became of
 * each.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

/* What the program says of an attack: the same numbers as there. */
enum {
	ATTACK_ALONE = 1,    /* wants a box of its own */
	ATTACK_NESTING = 2,  /* what kernel.profile `nested` permits */
	ATTACK_WRITES = 4,   /* audit.files: writes reports it */
	ATTACK_NETWORKS = 8, /* needs a policy with network rules */
	ATTACK_LONELY = 16,  /* needs one without */
	ATTACK_QUIET = 32,   /* the profile `strict` does not tell it */
};

enum verdict {
	VERDICT_UNCLEAR, /* it was not seen what became of it */
	VERDICT_HELD,
	VERDICT_BROKEN,
	VERDICT_ABSENT,	    /* this machine does not have the thing */
	VERDICT_UNPROMISED, /* the policy permits it, or has nothing that it is aimed at */
};

enum logged {
	LOGGED_UNPROMISED, /* no event is promised */
	LOGGED_YES,
	LOGGED_NO,
};

struct attempt {
	json_t *about; /* borrowed; the strings are its */
	const char *name, *axis, *promise, *event, *with, *limit, *set, *broken;
	unsigned flags;
	enum verdict verdict;
	enum logged logged;
	bool ended; /* by the limit that it exceeds */
	char detail[200];
	char lowered[96]; /* the limit in its box, where that is not the policy's */
	char run[PALE_ID_SIZE];
};

struct corpus {
	char program[4096]; /* without links */
	json_t *json;
	struct attempt *list;
	size_t n;
};

/* Asks the program. PALE_E_NOTFOUND: it is not installed. */
int corpus_load(struct corpus *ret, struct pale_err *err) _must_check_;
void corpus_done(struct corpus *c);
#define _cleanup_corpus_ _cleanup_(corpus_done)
