/* User namespaces: see userns.h. In the supervisor, except userns_map_self() (the set-up child). */
#include "userns.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/fd.h"

#define STAGE "confine"

static int write_proc(pid_t pid, const char *file, const char *text, struct pale_err *err)
{
	char path[64];
	_cleanup_close_ int fd = -1;
	int r;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	else
		snprintf(path, sizeof(path), "/proc/self/%s", file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	r = fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
	if (r < 0)
		return err_set(err, PALE_E_HOST, STAGE, -r, "cannot write the user namespace's %s",
			       file);
	return 0;
}

int userns_map_self(uid_t outside_uid, gid_t outside_gid, uid_t inside_uid, gid_t inside_gid,
		    struct pale_err *err)
{
	char line[64];
	int r;

	snprintf(line, sizeof(line), "%u %u 1\n", inside_uid, outside_uid);
	r = write_proc(0, "uid_map", line, err);
	if (r < 0)
		return r;
	/* Without this the kernel refuses gid_map; and nobody drops a group to gain access by it.
	 */
	r = write_proc(0, "setgroups", "deny", err);
	if (r < 0)
		return r;
	snprintf(line, sizeof(line), "%u %u 1\n", inside_gid, outside_gid);
	return write_proc(0, "gid_map", line, err);
}

int userns_bound_counts(struct pale_err *err)
{
	/* The kernel gives a user 128 instances; without one, file managers, editors and init
	 * itself fail. */
	static const struct {
		const char *path, *value;
	} bounds[] = {
		{"/proc/sys/user/max_inotify_instances", "16"},
		{"/proc/sys/user/max_inotify_watches", "16384"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bounds); i++) {
		_cleanup_close_ int fd = open(bounds[i].path, O_WRONLY | O_CLOEXEC);
		int r = fd < 0 ? -errno
			       : fd_write_all(fd, bounds[i].value, strlen(bounds[i].value));

		/* A kernel without inotify. */
		if (r < 0 && r != -ENOENT)
			return err_set(err, PALE_E_HOST, STAGE, -r, "cannot write %s",
				       bounds[i].path);
	}
	return 0;
}

int userns_map_range(pid_t pid, unsigned base, struct pale_err *err)
{
	char line[64];
	int r;

	snprintf(line, sizeof(line), "0 %u %u\n", base, USERNS_IDS);
	r = write_proc(pid, "uid_map", line, err);
	return r < 0 ? r : write_proc(pid, "gid_map", line, err);
}

int userns_map_ranges(pid_t pid, unsigned base, unsigned first, unsigned end, struct pale_err *err)
{
	unsigned next = base + USERNS_IDS;
	char text[128];
	size_t used;
	int r;

	used = (size_t)snprintf(text, sizeof(text), "0 %u %u\n", base, USERNS_IDS);
	if (base > first)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%u %u %u\n", first,
					 first, base - first);
	if (next < end)
		snprintf(text + used, sizeof(text) - used, "%u %u %u\n", next, next, end - next);
	r = write_proc(pid, "uid_map", text, err);
	return r < 0 ? r : write_proc(pid, "gid_map", text, err);
}

/* The lines of a map from 0..USERNS_IDS-1 to base.., with a and b exchanged. An id beyond the range
 * is shown as `a`, and a's own number then shows nothing. */
static void swapped_map(struct buf *b, unsigned base, unsigned ours, unsigned theirs)
{
	unsigned low = ours < theirs ? ours : theirs, high = ours < theirs ? theirs : ours;

	if (ours == theirs) {
		buf_addf(b, "0 %u %u\n", base, USERNS_IDS);
		return;
	}
	if (low > 0)
		buf_addf(b, "0 %u %u\n", base, low);
	if (theirs >= USERNS_IDS) {
		buf_addf(b, "%u %u 1\n", theirs, base + ours);
		if (low + 1 < USERNS_IDS)
			buf_addf(b, "%u %u %u\n", low + 1, base + low + 1, USERNS_IDS - low - 1);
		return;
	}
	buf_addf(b, "%u %u 1\n", low, base + high);
	if (high > low + 1)
		buf_addf(b, "%u %u %u\n", low + 1, base + low + 1, high - low - 1);
	buf_addf(b, "%u %u 1\n", high, base + low);
	if (high + 1 < USERNS_IDS)
		buf_addf(b, "%u %u %u\n", high + 1, base + high + 1, USERNS_IDS - high - 1);
}

int userns_swapped(unsigned base, uid_t our_uid, uid_t their_uid, gid_t our_gid, gid_t their_gid,
		   struct pale_err *err)
{
	struct clone_args_v0 {
		uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
	} args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
	_cleanup_buf_ struct buf uids = BUF_INIT(256), gids = BUF_INIT(256);
	_cleanup_close_ int hold_read = -1, hold_write = -1, fd = -1;
	char path[64];
	int hold[2], r;
	long pid;

	swapped_map(&uids, base, our_uid, their_uid);
	swapped_map(&gids, base, our_gid, their_gid);
	if (uids.failed || gids.failed)
		return err_nomem(err, STAGE);
	if (pipe2(hold, O_CLOEXEC) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make a pipe");
	hold_read = hold[0];
	hold_write = hold[1];
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno,
			       "cannot make a user namespace for a mapping");
	if (pid == 0) {
		char c;

		/* Lives until the supervisor has what it wants, or is gone. */
		close(hold_write);
		(void)!read(hold_read, &c, 1);
		_exit(0);
	}
	r = write_proc((pid_t)pid, "uid_map", uids.data, err);
	if (r == 0)
		r = write_proc((pid_t)pid, "gid_map", gids.data, err);
	if (r == 0) {
		snprintf(path, sizeof(path), "/proc/%ld/ns/user", pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			r = err_set(err, PALE_E_SYSTEM, STAGE, errno,
				    "cannot open the mapping's namespace");
	}
	close_fd(&hold_write);
	while (waitpid((pid_t)pid, NULL, 0) < 0 && errno == EINTR)
		;
	return r < 0 ? r : take_fd(&fd);
}
