/* Landlock: a second lock on files, and the one on signals and abstract sockets.
 *
 * Built and applied by the box's set-up child, once the box's mounts are there. The mounts are the
 * first lock; this one still holds if something goes wrong with them, and cannot be undone. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct landlock_host {
	int abi;	 /* 0: this kernel has none, or it is switched off */
	char lacks[200]; /* what this ABI cannot do of what we ask, in words; empty if nothing */
	int error;	 /* not 0: an errno; it could not be looked at now, and abi says nothing */
};

/* Looks only. */
void landlock_probe(struct landlock_host *ret);

enum landlock_access {
	LANDLOCK_READ,	       /* read files, list directories */
	LANDLOCK_READ_EXECUTE, /* and execute */
	LANDLOCK_READ_WRITE,   /* everything but making device nodes and ioctls of devices */
	LANDLOCK_DEVICE,       /* read, write, ioctl: a device node, or a directory of them */
};

struct landlock; /* a ruleset that is being built */

/* Everything that the host's ABI can refuse is refused, unless a path is allowed: all file rights,
 * and signals and abstract sockets to the outside. The kernel also refuses every later change of
 * mounts; see landlock_scope_only(). host->abi must not be 0. */
int landlock_new(const struct landlock_host *host, struct landlock **ret,
		 struct pale_err *err) _must_check_;
void landlock_free(struct landlock *l);
static inline void landlock_freep(struct landlock **l)
{
	landlock_free(*l);
}
#define _cleanup_landlock_ _cleanup_(landlock_freep)

/* Files are left alone, and only signals and abstract sockets are scoped: for the profile `nested`,
 * because a process that is restricted in files may not mount. PALE_E_HOST below ABI 6. */
int landlock_scope_only(struct landlock *l, struct pale_err *err) _must_check_;

/* The other way round: signals and abstract sockets are left alone. For a process that has to
 * signal others, which have a domain of their own beside its. Before anything is allowed. */
int landlock_files_only(struct landlock *l, struct pale_err *err) _must_check_;

/* TCP ports can't be bound either, where the kernel (ABI 4) can refuse that; to be called before
 * anything is allowed. */
int landlock_forbid_bind(struct landlock *l, struct pale_err *err) _must_check_;

/* Allows the access below fd (O_PATH; a directory with all in it, or one file). Borrowed. Rules add
 * up; nothing takes a right away again. */
int landlock_allow_path(struct landlock *l, int fd, enum landlock_access access,
			struct pale_err *err) _must_check_;

/* Restricts the calling thread, and all that it will start, for good. no_new_privs must be set.
 * Async-signal-safe but for the message of a failure. */
int landlock_restrict_self(struct landlock *l, struct pale_err *err) _must_check_;

/* Its descriptor, for another process to restrict itself to; borrowed. */
int landlock_ruleset(const struct landlock *l);
int landlock_restrict_to(int ruleset, struct pale_err *err) _must_check_;
