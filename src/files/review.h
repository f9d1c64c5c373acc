/* What applying a run's changes would do, entry by entry, without doing it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "files/held.h"
#include "files/host.h"
#include "files/manifest.h"

enum verdict {
	VERDICT_SKIP,	  /* not among the paths that were asked for */
	VERDICT_APPLY,	  /* can be applied; after changes_apply(): was applied */
	VERDICT_ALREADY,  /* the host is like that already */
	VERDICT_HELD,	  /* held back: name it to apply it */
	VERDICT_CONFLICT, /* the host changed meanwhile */
	VERDICT_REFUSED,  /* never applied */
	VERDICT_FAILED,	  /* tried and failed */
	VERDICTS
};

extern const char *const verdict_names[VERDICTS];

struct review_item {
	enum verdict verdict;
	const struct held_rule *rule; /* held: by which; NULL: because of what is below it */
	char why[120];		      /* for people: safe for a terminal */
};

struct review_options {
	const char *const
		*paths; /* relative to the overlaid directory; only these and what is below */
	size_t npaths;
	const char *const *include; /* patterns (fnmatch) over whole paths that are not held back */
	size_t ninclude;
	bool all_held; /* nothing is held back */
	bool force;    /* conflicts of files and links are overwritten */
	const char *home;
};

/* One item an entry of m, in its order; free(). */
int review_changes(const struct manifest *m, int root_fd, const struct review_options *o,
		   struct review_item **ret, struct pale_err *err) _must_check_;

/* Whether path is dir or below it. */
bool review_below(const char *path, const char *dir);

/* The setuid and setgid bits of a file: never applied. */
bool review_has_setid(const struct change *c);
