/* Control groups of one box: v2 (root, delegated, or a systemd user scope) and v1.
 *
 * Runs in the supervisor, outside the box, with the caller's privileges. Nothing here is hostile but
 * the numbers that the box's behaviour produces. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

enum cgroup_kind {
	CGROUP_NONE,
	CGROUP_V1,
	CGROUP_V2,
	CGROUP_V2_SYSTEMD, /* v2, where a transient scope with delegation is asked of systemd first */
};

struct cgroup_host {
	enum cgroup_kind kind;
	bool memory, swap, pids, cpu, kill; /* controllers and files that a box's group will have */
	char base[256];  /* v2: the directory below which boxes' groups are made */
	char why[200];   /* why something is missing, and the remedy; empty if all is there */
};

/* What this process can make, by looking only (nothing is created); under 100 us. */
void cgroup_probe(struct cgroup_host *ret);

struct cgroup_limits {
	uint64_t memory_bytes; /* memory and swap together; 0: no limit */
	uint64_t processes;    /* 0: no limit */
	uint64_t cpus_milli;   /* 0: no limit */
};

struct cgroup; /* opaque; one box's groups */

struct cgroup_usage {
	uint64_t cpu_us;
	uint64_t memory_bytes;
	uint64_t memory_peak_bytes;
	uint64_t processes_peak; /* 0 where the kernel does not tell */
	uint64_t oom_kills;
	uint64_t processes_refused; /* forks that the limit refused */
	uint64_t throttled_us;
};

/* Makes the box's groups, named pale-<id>, with the limits set. Nothing is left on failure. */
int cgroup_create(const struct cgroup_host *host, const char *id, const struct cgroup_limits *limits,
		  struct cgroup **ret, struct pale_err *err) _must_check_;

/* A descriptor for clone3(CLONE_INTO_CGROUP), or -1 where that is not possible (v1). Borrowed. */
int cgroup_clone_fd(const struct cgroup *g);

/* Moves a process in (v1, or where CLONE_INTO_CGROUP was not used). */
int cgroup_attach(struct cgroup *g, pid_t pid, struct pale_err *err) _must_check_;

int cgroup_usage(struct cgroup *g, struct cgroup_usage *ret, struct pale_err *err) _must_check_;

/* A descriptor that polls readable (or POLLPRI, see *ret_events, a poll(2) mask) when the memory
 * limit was hit; cgroup_drain() rearms it. Borrowed; -1 if there is none. */
int cgroup_event_fd(struct cgroup *g, short *ret_events);
void cgroup_drain(struct cgroup *g);

/* Kills everything in it and waits (at most timeout_ms) until it is empty. */
int cgroup_kill(struct cgroup *g, unsigned timeout_ms, struct pale_err *err) _must_check_;

/* Removes the groups (which must be empty) and frees g. */
int cgroup_destroy(struct cgroup *g, struct pale_err *err) _must_check_;

/* After a supervisor was lost: finds groups named pale-<id>, kills what is in them, removes them.
 * 0 also if there were none. */
int cgroup_recover(const struct cgroup_host *host, const char *id, struct pale_err *err) _must_check_;
