/* The process backend, inside: what its files share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/helper.h"
#include "confine/affinity.h"
#include "egress/wire.h"
#include "isolation/isolation.h"

/* What the set-up child is given. Descriptors are those of the forked supervisor. */
struct setup {
	const struct plan *plan;
	const char *const *placeholders; /* one a secret of plan->network; NULL if none */
	int control_fd;			 /* the child's end */
	int peer_fd;			 /* the supervisor's */
	int init_fd;			 /* sealed memfd with the first process */
	int stdio[3];			 /* what becomes descriptors 0, 1, 2; -1: the pty */
	int kernel_fd;			 /* the command's end of the kernel channel, or -1 */
	int program_fd;			 /* sealed memfd that is executed as the command, or -1 */
	cpu_set_t processors;		 /* that the caller may run on */
};

/* What a descriptor is that the child passes out of the box. */
enum setup_fd {
	SETUP_FD_NONE, /* no descriptor: the network namespace is made */
	SETUP_FD_LISTENER,
	SETUP_FD_ROOT,
	SETUP_FD_DATA,
	SETUP_FD_TTY,
	SETUP_FD_AGENT,
	SETUP_FD_SHM,	  /* the list of System V shared memory of the box's own IPC namespace */
	SETUP_FD_VIEW,	  /* index: enum plan_view */
	SETUP_FD_COLLECT, /* index: which */
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
	int *sources; /* a detached mount a step, or -1 */
	int scratch;  /* the directory above the new root */
	int view_fds[VIEW_COUNT];
	int data_fd;
	int agent_fd; /* STEP_SOCKET's */
	int *collect_fds;
};
int mounts_open_sources(struct mounts *m, struct pale_err *err) _must_check_;
int mounts_step(struct mounts *m, const struct step *s, size_t at,
		struct pale_err *err) _must_check_;
/* Leaves the host's tree for the new root. The detaching of the old one takes the kernel a while
 * and goes on in a helper (its memory as network_start()'s) until mounts_left(): before any code of
 * the box can run. */
int mounts_leave(struct helper *h, struct pale_err *err) _must_check_;
int mounts_left(struct helper *h, struct pale_err *err) _must_check_;

/* sources.c: a detached, restricted mount of one step's host source; a descriptor or a negative
 * code. In the set-up child, or, for root, in the supervisor. */
int source_open(const struct step *s, struct pale_err *err) _must_check_;
/* Root, in the supervisor: the same through an id mapping, so that the host's owners show unchanged
 * in the box, each sent to the child. */
int source_send_mapped(const struct plan *plan, int userns_fd, unsigned base, int control_fd,
		       struct pale_err *err) _must_check_;

/* uid_range.c: a range of 65536 host ids that no other box uses; *ret_lock_fd keeps it. */
int uid_range_take(unsigned *ret_base, int *ret_lock_fd, struct pale_err *err) _must_check_;

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

/* privileges.c: what is dropped before the box's own code runs. */
int privileges_drop(const struct plan *plan, struct pale_err *err) _must_check_;
