/* The host's side of an overlay: the directory that was overlaid, reached step by step without
 * following anything, and the changes that a run left. */
#pragma once

#include <sys/stat.h>

#include "base/err.h"
#include "files/manifest.h"

/* Opens the overlaid directory and checks that it still is the one. A descriptor or a negative
 * code. */
int host_open_root(const struct manifest *m, struct pale_err *err) _must_check_;

/* The directory of the last path that was asked for stays open: entries come sorted. */
struct host_dir {
	int root_fd;
	int fd;
	char *path; /* of fd, relative to root_fd; NULL: none */
};

#define HOST_DIR(root) ((struct host_dir){.root_fd = (root), .fd = -1})
void host_dir_done(struct host_dir *d);
#define _cleanup_host_dir_ _cleanup_(host_dir_done)

/* The parent directory of path, and its last component (within path). Nothing is followed, no mount
 * point is crossed. fresh: open it again, whatever is remembered. The descriptor is borrowed until
 * the next call; a negative errno: -ENOENT, -ENOTDIR or -ELOOP (something else is in the way),
 * -EXDEV (a mount). */
int host_parent(struct host_dir *d, const char *path, bool fresh,
		const char **ret_name) _must_check_;

/* Whether what lies on the host (st; NULL: nothing) is what the run started from. */
bool host_matches_base(const struct manifest *m, const struct change *c, const struct stat *st);

/* Whether the host already is as the change wants it: 1, 0 or a negative errno. */
int host_has_change(const struct manifest *m, const struct change *c, int parent_fd,
		    const char *name, const struct stat *st) _must_check_;
