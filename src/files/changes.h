/* The changes of a workspace overlay, kept outside the box for review.
 *
 * When a run ends, the overlay's upper directory (in the box's tmpfs, hostile in names and
 * contents) is captured into runs/<id>/changes/<n>/: a manifest of JSON lines, and one plain file
 * that holds all contents, so that nothing hostile ever lies on the host under its name, as a
 * device, a link or an executable (manifest.h has the format). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct changes_source {
	int upper_fd;  /* the upper directory; borrowed */
	int userns_fd; /* of the box: entered to read what its modes forbid; root needs none (-1) */
	const char *root;   /* the host directory that was overlaid, absolute */
	const char *path;   /* where it was in the box */
	int64_t started_ns; /* CLOCK_REALTIME when the box was made: later host changes are
			       conflicts */
};

struct changes_summary {
	uint64_t added, modified, deleted, other; /* other: modes, links, directories made opaque */
	uint64_t refused; /* devices, sockets and the like: named in the manifest, never applied */
	uint64_t bytes;
};

/* Captures one overlay as changes/<n>/ in run_dir_fd. Atomic: the directory appears when complete.
 * Time is proportional to the changes. Runs the reading in a child that has nothing to lose. */
int changes_capture(const struct changes_source *src, int run_dir_fd, unsigned n,
		    struct changes_summary *ret, struct pale_err *err) _must_check_;
