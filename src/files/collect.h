/* Collection: what the box left in a `write` directory, copied to the host when the run ends. */
#pragma once

#include <stdint.h>

#include "base/err.h"

struct collect_report {
	uint64_t files, directories, links, bytes;
	uint64_t refused; /* devices, FIFOs, sockets, links that lead out, setuid bits, names that
			     clash */
};

/* Called once for each thing that was not copied; path (relative) is hostile bytes. */
typedef void collect_refusal(void *arg, const char *path, const char *why);

/* Copies the tree below source_fd (hostile) into the host directory dest (made if missing, mode
 * 0755 less umask): each file written beside and renamed into place, never through a link at the
 * destination, owned by the caller, setuid and setgid bits dropped, times kept. A single file may
 * be replaced; a directory is merged into. userns_fd as in changes_source. mounts (NULL-terminated,
 * or NULL): paths in the tree at which something else was mounted; what lies below a mount is an
 * empty file or directory of our own making, and would replace the host's if it were copied. */
int collect_tree(int source_fd, int userns_fd, const char *dest, uint64_t max_bytes,
		 char *const *mounts, collect_refusal *refused, void *arg,
		 struct collect_report *ret, struct pale_err *err) _must_check_;
