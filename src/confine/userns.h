/* User namespaces: id mappings of a box. */
#pragma once

#include <sys/types.h>

#include "base/err.h"

/* How many ids a root's box has. */
#define USERNS_IDS 65536U

/* Writes the maps of a process's new user namespace. In the namespace itself (pid 0): the caller's
 * own id alone, shown as inside_uid/inside_gid; needs no privilege. From outside, as root:
 * USERNS_IDS ids from base on. */
int userns_map_self(uid_t outside_uid, gid_t outside_gid, uid_t inside_uid, gid_t inside_gid,
		    struct pale_err *err) _must_check_;
int userns_map_range(pid_t pid, unsigned base, struct pale_err *err) _must_check_;
/* The same, and all other ids from `first` (at least USERNS_IDS) to before `end` under their own
 * numbers: for a namespace in which others are made that have those. */
int userns_map_ranges(pid_t pid, unsigned base, unsigned first, unsigned end,
		      struct pale_err *err) _must_check_;

/* In the namespace itself, with a /proc: bounds what its processes take of what the kernel counts
 * for the caller, who has the same for everything else that it runs (user_namespaces(7),
 * inotify(7)). */
int userns_bound_counts(struct pale_err *err) _must_check_;

/* A user namespace that exists only as a mapping for id-mapped mounts: as the range at base, but
 * with the two ids (on disk `theirs`, in the box `ours`) exchanged. Root only. A descriptor. */
int userns_swapped(unsigned base, uid_t our_uid, uid_t their_uid, gid_t our_gid, gid_t their_gid,
		   struct pale_err *err) _must_check_;
