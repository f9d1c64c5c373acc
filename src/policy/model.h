/* What the files of this folder share about struct policy, besides policy.h. */
#pragma once

#include <jansson.h>

#include "policy/policy.h"

#define POLICY_MAX_FILES    1024
#define POLICY_MAX_ENV	    1024
/* What the kernel takes as one string of an environment (MAX_ARG_STRLEN). */
#define POLICY_MAX_VARIABLE 131072

/* One entry of `files` as it was asked for: paths may be relative to base, and be missing. */
struct file_request {
	enum policy_access access;
	const char *path, *from, *collect;
	uint64_t size_bytes;
	const char *base;  /* absolute, without symbolic links */
	const char *where; /* for later messages */
};
int policy_append_file(struct policy *p, const struct file_request *q,
		       struct pale_err *err) _must_check_;

/* Exchanges what two policies hold. */
void policy_swap(struct policy *a, struct policy *b);

/* The texts of the shipped policies, embedded at build time. */
struct policy_shipped {
	const char *name;
	const char *text;
};
extern const struct policy_shipped policy_shipped[]; /* up to a row without a name */
