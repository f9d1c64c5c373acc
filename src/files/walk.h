/* A walk through a tree whose names and shape are hostile, with a second tree followed in step.
 *
 * Depth first, names in byte order, nothing followed. Each level holds its directories open, so
 * that no later rename can lead elsewhere; there is no recursion, and depth is bounded by the
 * descriptors and by WALK_PATH_MAX. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"

#define WALK_DIR_MAX   16128		    /* of a directory that is entered */
#define WALK_PATH_MAX  (WALK_DIR_MAX + 256) /* of any entry */
#define WALK_NAMES_MAX ((size_t)1 << 30)

/* What getdents64() gives. */
struct dirent_raw {
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

struct walk_level {
	int fd;		  /* the directory itself */
	int other;	  /* its counterpart in the second tree, or -1 */
	struct buf names; /* NUL-terminated, one after the other */
	const char **sorted;
	size_t count, next;
	size_t path_len; /* of the directory's own path in walk.path */
	unsigned flags;	 /* the user's */
	struct stat st;	 /* the user's: what was seen of the directory when it was entered */
};

struct walk {
	struct walk_level *levels;
	size_t depth, cap;
	char path[WALK_PATH_MAX + 1]; /* of the current entry, relative to the top */
	const char *name;	      /* its last component */
	size_t path_len;
};

/* Whether the current entry, a directory, is too deep to be entered. */
static inline bool walk_too_long(const struct walk *w)
{
	return w->path_len > WALK_DIR_MAX;
}

/* Enters a directory: reads its names. Both descriptors are stolen, also on failure. flags and st
 * are kept for the user. 0 or a negative errno. */
int walk_enter(struct walk *w, int fd, int other, unsigned flags,
	       const struct stat *st) _must_check_;

/* The next entry: 1, and its level through ret_level; or 0 when the directory on top of the stack
 * has no more, which is then the level returned and must be left with walk_leave(). */
int walk_next(struct walk *w, struct walk_level **ret_level) _must_check_;

/* Leaves the directory on top; path is then its own. Whether there are levels left. */
bool walk_leave(struct walk *w);

/* Whether the directory at this level has an entry of that name (binary search). */
bool walk_has(const struct walk_level *l, const char *name);

void walk_done(struct walk *w);
#define _cleanup_walk_ _cleanup_(walk_done)

/* Reads and sorts the names of a directory; fd is borrowed and left at its end. */
int walk_read_names(int fd, struct buf *names, const char ***ret_sorted,
		    size_t *ret_count) _must_check_;
