/* What the files of this folder share about struct policy, besides policy.h. */
#pragma once

#include <jansson.h>

#include "policy/policy.h"

#define POLICY_MAX_FILES    1024
#define POLICY_MAX_ENV	    1024
#define POLICY_MAX_RULES    2048
#define POLICY_MAX_SECRETS  64
/* The texts of all rules together: a preset repeats what its entry says for each of its rules. */
#define POLICY_MAX_NETWORK  (1u << 20)
#define POLICY_MAX_PUBLISH  16
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

/* The rows of lists (see struct option_list), as the options table describes them. */
struct rule_row {
	char *host, *address, *port, **ports;
	unsigned protocols;
	char **methods, **paths;
	unsigned intercept; /* enum option_bool */
	uint64_t rate_bytes, total_bytes;
	char *reason, *preset;
};
struct secret_row {
	char *env, *file, *value_from, **hosts, *header, *query;
	unsigned basic; /* enum option_bool */
};
struct publish_row {
	uint64_t port, host_port;
	char *path;
};
struct option_list;
/* One entry's canonical JSON; 0 or -ENOMEM. */
int policy_entry_json(const struct policy *p, const struct option_list *list, size_t i,
		      char **ret) _must_check_;
/* Checks the network part: network_check.c. */
int network_check(const struct policy *p, struct pale_err *err) _must_check_;
/* Its entries of publish: publish.c. */
int publish_check(const struct policy *p, struct pale_err *err) _must_check_;

extern const struct option_list list_files, list_allow, list_deny, list_secrets, list_publish;

/* Makes room for one more member of an array that grows at powers of two. array: a pointer to the
 * pointer to n members of that size. */
int policy_grow(void *array, size_t n, size_t size) _must_check_;

/* Loads the text of a preset into a new policy: nothing but network.allow, without presets. */
int policy_load_preset(struct policy *p, const char *text, size_t len, const char *name,
		       const char *base_dir, struct pale_err *err) _must_check_;

/* Puts the place before the message, and returns r. */
int policy_at_place(struct pale_err *err, const char *where, int r);

/* Exchanges what two policies hold. */
void policy_swap(struct policy *a, struct policy *b);

/* The texts of the shipped policies, embedded at build time. */
struct policy_shipped {
	const char *name;
	const char *text;
};
extern const struct policy_shipped policy_shipped[]; /* up to a row without a name */
extern const struct policy_shipped policy_presets[]; /* likewise, of network.allow */
