/* The process backend, inside: what its files share. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <linux/filter.h>

#include "base/helper.h"
#include "confine/affinity.h"
#include "egress/wire.h"
#include "isolation/isolation.h"

/* What sending to the set-up child came to when it has died: isolation_ready() hears why. */
static inline bool child_gone(int r)
{
	return r == -EPIPE || r == -ECONNRESET;
}

/* What becomes of the set-up child. */
enum box_role {
	BOX_PLAIN,  /* the first process of a box, which starts the command */
	BOX_ADOPTS, /* of one whose command is a zygote's fork */
	BOX_ZYGOTE, /* of a zygote's own; the zygote is its child */
};

/* What the set-up child is given. Descriptors are those of the forked supervisor. */
struct setup {
	const struct plan *plan;
	enum box_role role;
	const char *const *placeholders; /* one a secret of plan->network; NULL if none */
	int control_fd;			 /* the child's end */
	int peer_fd;			 /* the supervisor's */
	int init_fd;			 /* sealed memfd with the first process */
	int stdio[3];		    /* what becomes descriptors 0, 1, 2; -1: the pty, or nothing */
	int kernel_fd;		    /* the command's end of the kernel channel, or -1 */
	int program_fd;		    /* sealed memfd that is executed as the command, or -1 */
	int request_fd, library_fd; /* the zygote's: see zygote_wire.h */
	cpu_set_t processors;	    /* that the caller may run on */
	bool shared_keyring;	    /* it has the zygote's */
};

/* What a descriptor is that the child passes out of the box. */
enum setup_fd {
	SETUP_FD_NONE, /* no descriptor: the network namespace is made */
	SETUP_FD_LISTENER,
	SETUP_FD_ROOT,
	SETUP_FD_DATA,
	SETUP_FD_TTY,
	SETUP_FD_AGENT,
	SETUP_FD_RULESET, /* of Landlock, for a zygote's fork */
	SETUP_FD_COMMAND, /* a process descriptor of that fork; index: its id in the box */
	SETUP_FORKED,	  /* no descriptor: the fork has come to its end */
	SETUP_FD_SHM,	  /* the list of System V shared memory of the box's own IPC namespace */
	SETUP_FD_VIEW,	  /* index: enum plan_view */
	SETUP_FD_COLLECT, /* index: which */
	SETUP_FD_LOWER,	  /* index: which of the plan's overlays */
	SETUP_FD_EGRESS,  /* not one, but EGRESS_NSOCKETS */
};

/* The child's packets to the supervisor until it becomes init. */
struct setup_packet {
	struct pale_err err; /* code PALE_OK, or why the set-up failed */
	uint32_t what;	     /* enum setup_fd of the descriptor that comes along */
	uint32_t index;
};

/* The supervisor's packets to the child, with at most SOURCES_A_PACKET descriptors: one
 * without, after which it changes nothing of the child from outside any more (its processors and,
 * for root's box, its ids); for root's box the mounts of the sources by their steps, then the end;
 * the descriptors of its control groups. */
#define SOURCES_A_PACKET 16
struct source_packet {
	uint32_t count;
	uint32_t step[SOURCES_A_PACKET];
};
#define SOURCE_PACKET_END UINT32_MAX

/* setup.c: the child, from clone to exec. */
_Noreturn void setup_run(const struct setup *s);

/* mounts.c: sources are opened first, then covered by the new root. */
struct mounts {
	const struct plan *plan;
	const char *const *placeholders;
	enum box_role role;
	int *sources; /* a detached mount a step, or -1 */
	int scratch;  /* the directory above the new root */
	int view_fds[VIEW_COUNT];
	int data_fd;
	int agent_fd; /* STEP_SOCKET's */
	int *collect_fds;
	int *lower_fds; /* of a session: what lies under each of its overlays */
};
int mounts_open_sources(struct mounts *m, struct pale_err *err) _must_check_;
int mounts_step(struct mounts *m, const struct step *s, size_t at,
		struct pale_err *err) _must_check_;
/* Leaves the host's tree for the new root. The detaching of the old one takes the kernel a while
 * and goes on in a helper (its memory as network_start()'s) until mounts_left(): before any code of
 * the box can run. */
int mounts_leave(struct helper *h, struct pale_err *err) _must_check_;
int mounts_left(struct helper *h, struct pale_err *err) _must_check_;

/* After the last write to the box's /proc: read-only where the plan says so. */
int mounts_close_proc(const struct plan *plan, struct pale_err *err) _must_check_;

/* Is the step left out? A zygote's box has no place of the policy's files: what is in them may be
 * of a box's making, and modules must not be imported from there before the fork. Neither has it
 * files that the caller gave, which are for one box, nor what the supervisor would fill or listen
 * at. The box of its fork has no driver to start: to write one, large as it is, takes as long as
 * many mounts. */
static inline bool step_left_out(enum box_role role, const struct step *s)
{
	if (role == BOX_ADOPTS)
		return s->of_kernel;
	return role == BOX_ZYGOTE &&
	       (s->of_policy || s->given || s->type == STEP_COVER || s->type == STEP_SOCKET);
}

/* sources.c: a detached, restricted mount of one step's host source; a descriptor or a negative
 * code. In the set-up child, or, for root, in the supervisor. */
int source_open(const struct step *s, struct pale_err *err) _must_check_;
/* Root, in the supervisor: the same through an id mapping, so that the host's owners show unchanged
 * in the box, each sent to the child. */
int source_send_mapped(const struct plan *plan, enum box_role role, int userns_fd, unsigned base,
		       int control_fd, struct pale_err *err) _must_check_;

/* uid_range.c: a range of 65536 host ids that no other box uses; *ret_lock_fd keeps it. */
int uid_range_take(unsigned *ret_base, int *ret_lock_fd, struct pale_err *err) _must_check_;
/* All ids that boxes can have. */
void uid_range_all(unsigned *ret_first, unsigned *ret_end);

/* network.c: a network namespace of the box's own, with loopback up, and its DNS socket, or, where
 * the plan has a network, the broker's sockets and what leads to them; made by a helper while the
 * caller does something else, then entered. The memory is the helper's until network_enter()
 * returns: where the caller gives up before, it must last until the process ends. */
struct network {
	const struct plan *plan;
	struct helper helper;
	int fd, dns_fd; /* dns_fd: -1 with a network */
	int proc_fd;	/* with a network: the host's /proc */
	int control_fd;
	int sockets[EGRESS_NSOCKETS];
	bool done;
	struct pale_err err;
};
int network_start(struct network *n, const struct setup *s, struct pale_err *err) _must_check_;
int network_enter(struct network *n, struct pale_err *err) _must_check_;

/* privileges.c: what is dropped before the box's own code runs. Of the plan only user_range, uid
 * and gid count. */
int privileges_drop(const struct plan *plan, bool shared_keyring,
		    struct pale_err *err) _must_check_;
/* The same, but for the signal that comes when its parent ends (a fork's parent is not what it has
 * to end with), and for the signal handlers (which are the forked program's own). */
int privileges_give_up(const struct plan *plan, bool shared_keyring,
		       struct pale_err *err) _must_check_;
/* Exchanges the session keyring for an empty one that all boxes of this user namespace can share.
 * 0 or a negative errno. */
int privileges_share_keyring(void) _must_check_;

/* lockdown.c: the end of every set-up. */
struct lockdown {
	const struct plan *plan; /* as privileges_drop(), host.attach, side */
	const char *cwd;
	const struct sock_fprog *filter;
	bool listens;	     /* the filter has a listener, which is told over control_fd */
	bool forked;	     /* a zygote's fork */
	bool shared_keyring; /* what it has is none of the caller's */
	int control_fd;
	const struct rlimits *rlimits;				/* or NULL */
	int (*restrict_files)(void *arg, struct pale_err *err); /* by Landlock */
	void *arg;
};
/* *ret_listener: to be kept open until the supervisor has it, or -1. */
int lockdown(const struct lockdown *l, int *ret_listener, struct pale_err *err) _must_check_;

/* spawn.c: in the set-up child of a zygote's own box: starts the zygote. */
int zygote_spawn(const struct setup *s, struct pale_err *err) _must_check_;

/* process.c: what isolation_start() does, for each role. zygote: of BOX_ADOPTS, the zygote that it
 * is made for; stdio and the zygote's descriptors: of BOX_ZYGOTE. */
struct start {
	const struct plan *plan;
	enum box_role role;
	const char *const *placeholders;
	int cgroup_fd;
	struct zygote *zygote;
	int stdio[3], request_fd, library_fd;
};
int box_start(const struct start *how, struct box *ret, struct pale_err *err) _must_check_;
int program_memfd(const char *name, const void *program, size_t size,
		  struct pale_err *err) _must_check_;
/* zygote.c: what keeps the zygote's first process, for a box made with it. */
int zygote_hold(const struct zygote *z, struct box *box, struct pale_err *err) _must_check_;

/* The number of a process, as the /proc here has it, whatever process namespace the caller is in;
 * or a negative errno. */
pid_t pid_of(int pidfd);

/* birth.c: the set-up child of a box whose namespaces are children of a zygote's; base: root's, of
 * the box's ids, which are mapped when this returns. Sets ret->pid and pidfd, also if it fails
 * later. */
int birth(const struct zygote *z, struct setup *s, unsigned base, struct box *ret,
	  struct pale_err *err) _must_check_;
