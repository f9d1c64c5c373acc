/* Opening and removing in a tree of a running box, in a worker inside (inside_worker.h): nothing is
 * waited for, no link is followed but where the caller wants it, no other mount is entered. */
#pragma once

#include <stdbool.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

/* Nowhere but down, and in this mount. */
#define TREE_BENEATH \
	(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV)

/* A descriptor or a negative errno. EAGAIN: the tree is being renamed, or a lease was broken, which
 * is not waited for. */
int tree_open(int dir, const char *path, int flags, mode_t mode, uint64_t resolve) _must_check_;

/* Removes the directory parent/name with all in it. force: also where modes of its owner forbid it.
 * Counts what was removed; *ret_more: it took too long, and there is more. 0 or a negative errno.
 */
int tree_remove(int parent, const char *name, bool force, uint32_t *count,
		bool *ret_more) _must_check_;
