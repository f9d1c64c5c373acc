/* What this host can enforce for this user: looked at, not tried, so that it costs a run little.
 * `pale doctor` tries (doctor.c). */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "confine/cgroup.h"
#include "confine/landlock.h"

struct host {
	uid_t uid;
	gid_t gid;
	bool root;	 /* has what it takes to map a range of ids and to make idmapped mounts */
	unsigned kernel; /* 6.18 is 618 */
	char release[65];
	bool owns_settings; /* not root, but the files in /proc/sys are its own */
	struct cgroup_host cgroup;
	struct landlock_host landlock;
	bool merged_usr; /* /bin, /lib, ... are links into /usr */
	unsigned processors;
	bool listener; /* a seccomp listener can be had: no outer sandbox has one */
	bool attach;   /* a supervisor may take a descriptor out of its box (Yama's ptrace_scope is
			  below 3) */
};

int host_probe(struct host *ret, struct pale_err *err) _must_check_;

/* Why this user cannot make a user namespace, with the remedy; the empty string if nothing is known
 * against it. Reads sysctls; for messages after a failure, and for the doctor. */
const char *host_userns_remedy(char *out, size_t size);
