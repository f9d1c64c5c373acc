/* The end of every set-up: what a process gives up before the box's own code runs in it, in the one
 * order that works.
 *
 * Runs in the set-up child, which then becomes the box's first process, and in a zygote's fork,
 * which then is the box's kernel: the same code, so that neither keeps what the other gives up.
 * Nothing hostile is read. A failure ends the process. */
#include "process.h"

#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/str.h"
#include "confine/core_sched.h"
#include "confine/seccomp.h"
#include "confine/speculation.h"

#define STAGE "confine"

/* Under the filter sendmsg() waits for the supervisor's answer, and the supervisor has no listener
 * yet: it is told its number and takes it; it stays open here until that is done. Where the kernel
 * forbids that, a helper without the filter sends it. */
static int install_filter(const struct lockdown *l, int *ret_listener)
{
	struct setup_packet packet = {.what = SETUP_FD_LISTENER};
	int listener = -1, r;

	if (!l->plan->host.attach)
		return seccomp_install_program_send(l->filter, l->listens, l->control_fd, &packet,
						    sizeof(packet));
	r = seccomp_install_program(l->filter, l->listens, &listener);
	if (r < 0 || listener < 0)
		return r;
	packet.index = (uint32_t)listener;
	if (fcntl(listener, F_SETFD, 0) < 0)
		return -errno;
	*ret_listener = listener;
	return send(l->control_fd, &packet, sizeof(packet), MSG_NOSIGNAL) == (ssize_t)sizeof(packet)
		       ? 0
		       : -EPIPE;
}

int lockdown(const struct lockdown *l, int *ret_listener, struct pale_err *err)
{
	int r = l->forked ? privileges_give_up(l->plan, l->shared_keyring, err)
			  : privileges_drop(l->plan, l->shared_keyring, err);

	*ret_listener = -1;
	/* The zygote was not, nor is who changes ids; who was executed as the box's user is: its
	 * files in /proc are its own. */
	if (r == 0 && l->forked && prctl(PR_SET_DUMPABLE, 1) < 0)
		r = err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot become dumpable");
	/* As the box's user: the working directory must be one that it may enter. */
	if (r == 0 && chdir(l->cwd) < 0)
		r = err_set(err, PALE_E_USAGE, "isolation", errno,
			    "cannot enter the working directory %s", QUOTED(l->cwd));
	if (r == 0)
		r = l->restrict_files(l->arg, err);
	/* Before the filter, which refuses the second, and so that nothing of the box's own ever
	 * ran without. */
	if (r == 0)
		r = speculation_restrict(l->plan->side.speculation, err);
	if (r == 0 && l->plan->side.core_sched)
		r = core_sched_separate(err);
	if (r < 0)
		return r;
	r = install_filter(l, ret_listener);
	if (r < 0)
		return err_set(err, PALE_E_HOST, STAGE, -r, "cannot install the seccomp filter");
	/* Last: a small limit of open files is the payload's, not what the steps before must make
	 * do with. */
	return l->rlimits ? rlimits_apply(l->rlimits, err) : 0;
}
