/* A box, as its supervisor holds it. One backend so far: process/.
 *
 * Order: isolation_start() builds the box up to its gate; isolation_go() lets the first instruction
 * run; the descriptors are then watched by src/supervise; isolation_kill() and isolation_reap() end
 * it; isolation_done() releases what is left. The caller is single-threaded (it clones). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/err.h"
#include "confine/cgroup.h"
#include "egress/wire.h"
#include "plan/plan.h"

struct zygote;

struct box {
	pid_t pid; /* the first process, in the host's view */
	int pidfd;
	int control_fd;	 /* SOCK_SEQPACKET to init: struct init_message both ways */
	int listener_fd; /* seccomp notifications, or -1 */
	int root_fd;	 /* O_PATH: the box's root, as it sees it */
	int data_fd;	 /* the data tmpfs, or -1 */
	int agent_fd;	 /* the listener of its SSH_AUTH_SOCK, or -1 */
	int userns_fd;	 /* its user namespace */
	int stdin_fd, stdout_fd, stderr_fd; /* our ends of the pipes, or -1 */
	int tty_fd;			    /* master of its pty, or -1 */
	int kernel_fd;			    /* our end of the kernel channel, or -1 */
	int *collect_fds;		    /* plan->ncollect directories */
	size_t ncollect;
	int *lower_fds; /* of a session: what lies under each of plan->overlays, O_PATH */
	size_t nlower;
	int shm_fd;		  /* /proc/sysvipc/shm of the box, or -1 */
	int view_fds[VIEW_COUNT]; /* files that the box sees in /proc, for the supervisor to fill;
				     or -1 */
	int egress_fds[EGRESS_NSOCKETS]; /* for the broker, if the plan has a network (has_egress)
					  */
	bool has_egress;
	int uid_lock_fd; /* keeps the range of host uids, or -1 */
	/* Of a box whose command is a zygote's fork: the fork, which is no child of its first
	 * process; what is the fork's, until isolation_adopt(); what keeps the zygote's first
	 * process. */
	int command_pidfd;
	pid_t command_pid; /* in the host's view; 0: none yet */
	struct zygote *zygote;
	const char *const *placeholders;
	int inside_fds[3], channel_fd, ruleset_fd;
	int lease_fds[2];
	unsigned host_uid, host_gid; /* of the box's user */
	bool reaped;
	int wait_status;
	struct rusage usage;
};

#define BOX_INIT                                            \
	((struct box){.pid = -1,                            \
		      .pidfd = -1,                          \
		      .control_fd = -1,                     \
		      .listener_fd = -1,                    \
		      .root_fd = -1,                        \
		      .data_fd = -1,                        \
		      .agent_fd = -1,                       \
		      .userns_fd = -1,                      \
		      .stdin_fd = -1,                       \
		      .stdout_fd = -1,                      \
		      .stderr_fd = -1,                      \
		      .tty_fd = -1,                         \
		      .kernel_fd = -1,                      \
		      .shm_fd = -1,                         \
		      .view_fds = {-1, -1, -1, -1, -1, -1}, \
		      .uid_lock_fd = -1,                    \
		      .command_pidfd = -1,                  \
		      .inside_fds = {-1, -1, -1},           \
		      .channel_fd = -1,                     \
		      .ruleset_fd = -1,                     \
		      .lease_fds = {-1, -1}})

/* Starts building: returns when the child is cloned and goes on by itself. placeholders: what the
 * box has of each secret of plan->network, borrowed until it stands at its gate; NULL without
 * secrets. cgroup_fd: the group to clone it into (cgroup_clone_fd()), or -1. If plan->join_cgroup,
 * isolation_join() must follow. zygote: what is to become the command with isolation_adopt(),
 * borrowed until then; or NULL: it is started in the box. With one cgroup_fd is -1, and a group
 * that is not joined is attached from outside, as with plan_waits_for_group(). On failure
 * isolation_done() is still to be called. */
int isolation_start(const struct plan *plan, const char *const *placeholders, int cgroup_fd,
		    struct zygote *zygote, struct box *ret, struct pale_err *err) _must_check_;
/* Hands over the descriptors by which the child puts itself into its groups (cgroup_join_fds()). */
int isolation_join(struct box *box, const int *fds, size_t n, struct pale_err *err) _must_check_;
/* Tells a box that was attached from outside that it is in its group. Before isolation_ready(). */
int isolation_attached(struct box *box, struct pale_err *err) _must_check_;
/* Waits until its network namespace is made (or it failed). That and its mounts take the most time,
 * and two processors are then busy: what the caller does in that time would hold them up. */
void isolation_yield(const struct box *box);
/* With a network: waits until its sockets are here (box->egress_fds). */
int isolation_network(struct box *box, struct pale_err *err) _must_check_;
/* Waits until it stands at its gate, fully confined (or failed: then err is the child's). */
int isolation_ready(const struct plan *plan, struct box *box, struct pale_err *err) _must_check_;
/* Opens the gate. The first process of a box for which plan_waits_for_group() stays when the
 * command has ended, until isolation_kill(). */
int isolation_go(const struct plan *plan, struct box *box, struct pale_err *err) _must_check_;
/* Has the zygote fork, and the fork enter a box that is ready, confine itself as the command of any
 * box, and become that box's kernel. Nothing of the policy's code has run then, whether the gate is
 * open or not. cgroup: the box's, or NULL. */
int isolation_adopt(const struct plan *plan, struct cgroup *cgroup, struct box *box,
		    struct pale_err *err) _must_check_;
/* The process of box->command_pidfd has ended (it polls readable then): tells the first process,
 * which ends the box and says how the command ended. */
void isolation_command_ended(struct box *box);
/* Passes a signal on to the command's process group. 0 or a negative errno. */
int isolation_signal(struct box *box, int signal_number) _must_check_;
/* A signal for the process `pid`, as it is numbered in the box; group: and the group that it leads.
 * 0 or a negative errno. */
int isolation_kill_one(struct box *box, int32_t pid, int signal_number, bool group) _must_check_;
/* Stops everything in the box but its first process, or lets it go on. exact: what stood already
 * stays so; then the seccomp listener has to be served meanwhile. 0 or a negative errno. */
int isolation_pause(struct box *box, bool stop, bool exact) _must_check_;
/* In a forked child of the supervisor: becomes the box's user in its user and mount namespaces,
 * under its Landlock rules, without capabilities; not in its process namespace, so that nothing in
 * it sees or reaches this process. Dies with the supervisor. Descriptors stay open: the caller
 * closes what the box is not to be reached by. readable: n directories that the box's rules do not
 * name and that may be read (-1: none). */
int isolation_enter(const struct box *box, const struct plan *plan, const int *readable, size_t n,
		    struct pale_err *err) _must_check_;
void isolation_kill(struct box *box);
/* Waits for the first process; everything in its pid namespace is dead when it returns. */
void isolation_reap(struct box *box);
void isolation_done(struct box *box);
