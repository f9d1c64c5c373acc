/* What the files of the layout share: the list of places. Private to layout.c, layout_given.c,
 * layout_network.c and results.c. */
#pragma once

#include <string.h>

#include "plan/layout.h"

enum place_kind {
	PLACE_HOST, /* part of the host image: a plain bind */
	PLACE_READ,
	PLACE_OVERLAY,
	PLACE_SHARED, /* a directory of the data tmpfs */
	PLACE_SIZED,  /* a tmpfs of its own */
	PLACE_HIDE,
	PLACE_LINK,
	PLACE_EMPTY,   /* a directory, read-only like the root, that programs expect */
	PLACE_SPECIAL, /* proc, dev, etc: nothing may be mounted in it */
};

struct place {
	enum place_kind kind;
	char *path; /* in the box, absolute */
	char *source;
	const char *where; /* for messages */
	const char *collect;
	char name[16]; /* in the data tmpfs */
	uint64_t size_bytes;
	unsigned mode, index;
	bool is_file, own, swap_owner, real;
	bool of_policy;
	struct place *in; /* the place that this one is mounted in, or NULL: the root */
};

struct layout {
	struct plan *plan;
	struct place *places;
	size_t n, cap;
	char **dirs; /* already made in the root */
	size_t ndirs, cap_dirs;
};

/* Is `path` the same as `dir` or below it? */
static inline bool place_within(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (n == 1 && *dir == '/')
		return true;
	return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* What is read back when the box has ended: p->collect and p->overlays. Where results are to go is
 * looked at now: what is already seen to be impossible (a file, no such parent, no right to write)
 * would otherwise lose them. */
int layout_results(struct layout *l, struct pale_err *err) _must_check_;

/* The directories above `path`, but none above or at `top`, which may be NULL. */
int layout_parents(struct layout *l, const char *path, const char *top,
		   struct pale_err *err) _must_check_;

/* Where the box's ssh finds the agent, and the keys of the hosts that it is for, so that it asks
 * nobody whether they are right. */
int layout_agent(struct layout *l, struct pale_err *err) _must_check_;

/* The files that hold placeholders of secrets: in directories that are the box's own, where no link
 * of anybody's can stand in the way. */
int layout_secrets(struct layout *l, struct pale_err *err) _must_check_;

/* The caller's files: in writable directories of the box's own, as the user's. */
int layout_given(struct layout *l, const struct pale_file *files, size_t n,
		 struct pale_err *err) _must_check_;
