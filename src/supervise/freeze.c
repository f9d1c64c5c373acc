/* Stopping a box where it stands: see freeze.h. In the supervisor, with its privileges; what is
 * frozen is not asked, but may be of any number of processes, so nothing here waits long.
 *
 * The control group's freezer does it where there is one. Elsewhere its first process sends SIGSTOP
 * to all others (init.c), which a program can undo for itself: the plan says so.
 *
 * A box dies with its supervisor because the kernel then kills its first process. In a frozen group
 * of version 1 that signal waits like any other, so while such a box is frozen a keeper lives, a
 * child that does nothing but wait for our end and let the box go on, into its death. (Were the
 * keeper killed too, the next command that closes lost runs does it.) */
#include "supervise/freeze.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "supervise/run.h"

#define STAGE	"supervise"
#define WAIT_US 2000 /* mostly it takes a tenth of that */

/* --- the keeper --------------------------------------------------------------------------------
 */

/* It holds no descriptor but these, least of all one by which the box would seem to have a
 * supervisor. */
static _Noreturn void keep(int wait_fd, int thaw_fd, const char *text)
{
	sigset_t all;
	char byte;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	(void)!chdir("/");
	prctl(PR_SET_NAME, "pale-keeper");
	prctl(PR_SET_DUMPABLE, 0);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	/* First out of the way of the numbers that they get. */
	wait_fd = fcntl(wait_fd, F_DUPFD_CLOEXEC, 64);
	thaw_fd = fcntl(thaw_fd, F_DUPFD_CLOEXEC, 64);
	if (dup2(wait_fd, STDIN_FILENO) < 0 || dup2(thaw_fd, STDOUT_FILENO) < 0)
		_exit(1);
	/* What it kept would stay open for as long as it waits. */
	if (close_range(STDERR_FILENO, ~0u, 0) < 0)
		_exit(1);
	while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR)
		;
	(void)!write(STDOUT_FILENO, text, strlen(text));
	_exit(0);
}

static int start_keeper(struct run *run, struct pale_err *err)
{
	const char *text;
	_cleanup_close_ int thaw_fd = cgroup_thaw_fd(run->cgroup, &text);
	int pipe_fds[2];
	pid_t pid;

	if (thaw_fd < 0)
		return 0;
	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make a pipe");
	pid = fork();
	if (pid == 0)
		keep(pipe_fds[0], thaw_fd, text);
	close(pipe_fds[0]);
	if (pid < 0) {
		close(pipe_fds[1]);
		return err_set(err, PALE_E_SYSTEM, STAGE, errno,
			       "cannot start what lets the frozen box die with its supervisor");
	}
	run->thaw_keeper = pid;
	run->thaw_pipe = pipe_fds[1];
	return 0;
}

/* Before the box goes on: it must not do so a second time when it is frozen again. */
static void stop_keeper(struct run *run)
{
	if (!run->thaw_keeper)
		return;
	kill(run->thaw_keeper, SIGKILL);
	while (waitpid(run->thaw_keeper, NULL, 0) < 0 && errno == EINTR)
		;
	run->thaw_keeper = 0;
	close_fd(&run->thaw_pipe);
}

/* --- freezing ----------------------------------------------------------------------------------
 */

static bool by_group(const struct run *run)
{
	return run->plan->cgroup_limits.freezer && run->cgroup && cgroup_can_freeze(run->cgroup);
}

int freeze_set(struct run *run, bool freeze, struct pale_err *err)
{
	uint64_t until;
	int r;

	if (!by_group(run)) {
		r = isolation_pause(&run->box, freeze, true);
		if (r < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, -r,
				       "cannot reach the box's first process");
		run->frozen = freeze;
		return 0;
	}
	if (!freeze) {
		stop_keeper(run);
		r = cgroup_freeze(run->cgroup, false, err);
		run->frozen = r < 0;
		if (r == 0 && run->inside)
			inside_frozen(run->inside, false);
		return r;
	}
	if (run->inside)
		inside_frozen(run->inside, true);
	r = run->thaw_keeper ? 0 : start_keeper(run, err);
	if (r == 0)
		r = cgroup_freeze(run->cgroup, true, err);
	if (r < 0) {
		/* It goes on, and so does what brings its files back: its time counts again. */
		if (run->inside)
			inside_frozen(run->inside, false);
		stop_keeper(run);
		return r;
	}
	run->frozen = true;
	/* The kernel can tell when it is done, but 10 ms late. */
	until = clock_mono_us() + WAIT_US;
	while (!cgroup_stands(run->cgroup)) {
		if (clock_mono_us() >= until)
			return 1;
		sched_yield();
	}
	return 0;
}

bool freeze_done(struct run *run)
{
	return !by_group(run) || cgroup_stands(run->cgroup);
}

void freeze_end(struct run *run)
{
	run->frozen = false;
	stop_keeper(run);
	/* It kills whatever is left first. */
	if (run->cgroup)
		cgroup_kill_once(run->cgroup);
}
