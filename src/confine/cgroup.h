/* Control groups of one box: v2 (root, delegated, or a systemd user scope) and v1.
 *
 * Runs in the supervisor, outside the box, with the caller's privileges. Nothing here is hostile
 * but the numbers that the box's behaviour produces. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

enum cgroup_kind {
	CGROUP_NONE,
	CGROUP_V1,
	CGROUP_V2,
	CGROUP_V2_SYSTEMD, /* v2, where a transient scope with delegation is asked of systemd first
			    */
};

/* The v1 controllers that a box can need, each possibly in a hierarchy of its own. */
enum cgroup_v1_controller {
	CGROUP_MEMORY,
	CGROUP_PIDS,
	CGROUP_CPU,
	CGROUP_CPUACCT,
	CGROUP_FREEZER,
	CGROUP_V1_COUNT,
};

struct cgroup_host {
	enum cgroup_kind kind;
	bool memory, swap, pids, cpu, kill; /* controllers and files that a box's group will have */
	bool cputime;	/* the cpu time of a whole box is counted by the kernel */
	bool freeze;	/* a whole box can be stopped where it stands: cgroup_freeze() */
	bool vacate;	/* v2: this process must first move itself into a leaf below base */
	char base[256]; /* v2: the directory below which boxes' groups are made */
	char v1[CGROUP_V1_COUNT]
	       [256];  /* v1: the same, for each controller; "" where there is none */
	char why[400]; /* why something is missing, and the remedy; empty if all is there */
	int error;     /* the errno of what could not even be looked at, or 0: then nothing of the
			* above is known, and a box must not be made with less because of it */
};

/* What this process can make, by looking only (nothing is created); under 100 us. */
void cgroup_probe(struct cgroup_host *ret);

struct cgroup_limits {
	uint64_t memory_bytes; /* memory and swap together; 0: no limit */
	uint64_t processes;    /* 0: no limit */
	uint64_t cpus_milli;   /* 0: no limit */
	bool freezer;	       /* no limit: it is to be frozen, for which v1 needs one group more */
};

struct cgroup; /* opaque; one box's groups */

struct cgroup_usage {
	uint64_t cpu_us;
	uint64_t memory_peak_bytes;
	uint64_t processes_peak; /* 0 where the kernel does not tell */
	uint64_t oom_kills;
	uint64_t processes_refused; /* forks that the limit refused */
};

/* Makes the box's groups, named pale-<id>, with the limits set; only what the limits (and cpu
 * accounting) need. Limits that the host has no controller for are an error. Nothing is left on
 * failure. v2 with host->vacate moves the calling process into a leaf of its own group. */
int cgroup_create(const struct cgroup_host *host, const char *id,
		  const struct cgroup_limits *limits, struct cgroup **ret,
		  struct pale_err *err) _must_check_;

/* A descriptor for clone3(CLONE_INTO_CGROUP), or -1 where that is not possible (v1). Borrowed. */
int cgroup_clone_fd(const struct cgroup *g);

/* Descriptors through which a process puts itself in, with cgroup_join(), before it starts any
 * thread: v1's quick way. Moving another process takes a system-wide lock that waits for an RCU
 * grace period (11 ms on an idle machine, where this takes 0.08), and a process that moves only
 * itself needs no lock. Returns the count; 0 where clone_fd or cgroup_attach() is the way.
 * Borrowed. */
#define CGROUP_JOIN_MAX CGROUP_V1_COUNT
size_t cgroup_join_fds(const struct cgroup *g, int fds[static CGROUP_JOIN_MAX]);
/* In the box's first process, single-threaded; async-signal-safe. 0 or a negative errno. */
int cgroup_join(const int *fds, size_t n) _must_check_;

/* For a process that comes later and is not of the box, but counts as part of it: v1: it joins by
 * this, single-threaded, and not what may be frozen. Async-signal-safe. 0 or a negative errno. */
int cgroup_join_beside(const struct cgroup *g) _must_check_;
/* v2: a descriptor for clone3(CLONE_INTO_CGROUP), -1 in v1; close it. It is frozen with the box
 * then: cgroup_holds_later(). */
int cgroup_later_fd(const struct cgroup *g);
bool cgroup_holds_later(const struct cgroup *g);
/* The same, for one that was there before: it is moved by its caller, in v1 for its memory alone
 * (and the caller waits for an RCU grace period, see cgroup_join_fds()). 0 or a negative errno. */
int cgroup_take_beside(const struct cgroup *g, pid_t pid) _must_check_;

/* Moves a process in, where neither CLONE_INTO_CGROUP nor cgroup_join() was used: the only way for
 * CGROUP_V2_SYSTEMD (cgroup_clone_fd() is -1 and cgroup_join_fds() is 0 there). */
int cgroup_attach(struct cgroup *g, pid_t pid, struct pale_err *err) _must_check_;
/* The same in two halves, since systemd takes a millisecond or more in which the box can be set up.
 */
int cgroup_attach_begin(struct cgroup *g, pid_t pid, struct pale_err *err) _must_check_;
int cgroup_attach_end(struct cgroup *g, struct pale_err *err) _must_check_;

/* Works until cgroup_destroy(); once the box is dead it may give the figures of just before. */
/* Processor time alone, which is quicker to ask for than all of it. 0 or a negative errno. */
int cgroup_cpu_us(const struct cgroup *g, uint64_t *ret) _must_check_;
int cgroup_usage(struct cgroup *g, struct cgroup_usage *ret, struct pale_err *err) _must_check_;
/* Takes the figures of now, where the group goes away with its last process (CGROUP_V2_SYSTEMD): to
 * be called before that ends. */
void cgroup_remember(struct cgroup *g);

/* Bytes that it uses and that could not be dropped if they were needed. */
uint64_t cgroup_memory_kept(const struct cgroup *g);

/* A descriptor that polls readable (or POLLPRI, see *ret_events, a poll(2) mask) when the memory
 * limit was hit; cgroup_drain() rearms it. Borrowed; -1 if there is none. v1 starts watching with
 * the first call, which may come after the box has started: a limit that is being hit is reported
 * then. */
int cgroup_event_fd(struct cgroup *g, short *ret_events);
void cgroup_drain(struct cgroup *g);

/* How long processes had to wait because the share of the processors was used up. */
uint64_t cgroup_throttled_us(const struct cgroup *g);

/* How much it counts beside other groups that want the same processor: little (low), or as much as
 * any. Where that cannot be set it stays as it is. */
void cgroup_weigh(struct cgroup *g, bool low);

/* Some of the threads in it, by their numbers here; how many. */
size_t cgroup_threads(const struct cgroup *g, pid_t *ret, size_t most);

/* Stops everything in it where it stands, or lets it go on. Returns at once: whoever is in the
 * middle of a system call stops when that returns, see cgroup_stands(). Only where it was made with
 * limits.freezer and cgroup_can_freeze() says so. v1: what is frozen does not die by SIGKILL, nor
 * with its supervisor, until it is let go on; the functions that kill see to that. */
bool cgroup_can_freeze(const struct cgroup *g);
int cgroup_freeze(struct cgroup *g, bool freeze, struct pale_err *err) _must_check_;
/* After cgroup_freeze(g, true): whether all of it stands still. */
bool cgroup_stands(struct cgroup *g);
/* A descriptor and the text that lets it go on when it is written there: for one who outlives us.
 * -1 where nobody needs to, since what is frozen dies like everything else. Close it. */
int cgroup_thaw_fd(const struct cgroup *g, const char **ret_text);

/* Kills what is in it now, and does not wait: so that all die at once, and not when the first of
 * them gets its turn among the others. */
void cgroup_kill_once(struct cgroup *g);

/* Kills everything in it and waits (at most timeout_ms) until it is empty. */
int cgroup_kill(struct cgroup *g, unsigned timeout_ms, struct pale_err *err) _must_check_;

/* Removes the groups and frees g. They should be empty; what is left in them is killed. */
int cgroup_destroy(struct cgroup *g, struct pale_err *err) _must_check_;

/* After a supervisor was lost: finds groups named pale-<id>, kills what is in them, removes them.
 * 0 also if there were none. */
int cgroup_recover(const struct cgroup_host *host, const char *id,
		   struct pale_err *err) _must_check_;
