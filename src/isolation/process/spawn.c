/* Starts a zygote, in its own box.
 *
 * Runs in the set-up child of that box, which becomes its first process and the zygote's parent.
 * The zygote is an interpreter with the kernel's driver, as the box's user, without a capability:
 * those that it needs over the boxes made for it come from their user namespaces' being its own
 * user's. It has no filter and no Landlock rules, because a fork could never lose them, and what
 * they refused would never be reported in a box; it runs what the policy imports, from the host's
 * toolchain, and nothing of any box. */
#include "process.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/fd.h"

#define STAGE	  "isolation"
#define PID_FLOOR 1000 /* more than a box has processes by then */

/* What goes wrong is said where the interpreter would say it. */
_Noreturn static void die(const char *what)
{
	dprintf(STDERR_FILENO, "cannot %s: %s\n", what, strerror(errno));
	_exit(1);
}

_Noreturn static void become_zygote(const struct setup *s)
{
	const struct plan_command *c = &s->plan->command;
	char fds[32], *argv[16] = {0};
	struct pale_err err;
	size_t n = 0;

	while (c->argv[n] && n < ARRAY_SIZE(argv) - 3) {
		argv[n] = c->argv[n];
		n++;
	}
	snprintf(fds, sizeof(fds), "%d,%d", s->request_fd, s->library_fd);
	argv[n++] = (char *)(uintptr_t) "--serve";
	argv[n] = fds;
	if (privileges_drop(s->plan, false, &err) < 0) {
		dprintf(STDERR_FILENO, "%s\n", err.message);
		_exit(1);
	}
	/* Where keys are off there is none to share. */
	(void)!privileges_share_keyring();
	if (setsid() < 0 || chdir("/") < 0)
		die("leave the caller's session");
	if (syscall(SYS_close_range, 3U, ~0U, 1U << 2 /* CLOSE_RANGE_CLOEXEC */) < 0 ||
	    fcntl(s->request_fd, F_SETFD, 0) < 0 || fcntl(s->library_fd, F_SETFD, 0) < 0)
		die("keep its descriptors");
	execve(c->program, argv, c->env);
	die("start the interpreter");
}

/* Libraries tell a fork by its process id, and so may miss one in whose namespace it has the same:
 * OpenSSL would then use the same random numbers in each box. So the zygote's is one that a box's
 * processes do not come to. */
static pid_t highest_pid(void)
{
	_cleanup_close_ int fd = open("/proc/sys/kernel/pid_max", O_RDONLY | O_CLOEXEC);
	char text[24] = "";
	long max = fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 ? strtol(text, NULL, 10) : 0;

	return max > PID_FLOOR && max <= 1L << 22 ? (pid_t)(max - 1) : 32767;
}

int zygote_spawn(const struct setup *s, struct pale_err *err)
{
	pid_t wanted = highest_pid();
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = (uint64_t)(uintptr_t)&wanted,
		.set_tid_size = 1,
	};
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0)
		become_zygote(s);
	return pid < 0 ? err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot fork the zygote") : 0;
}
