/* The set-up child of a box that a zygote's fork will enter: in namespaces that are children of the
 * zygote's, and yet a child of the supervisor's, so that the two end with one another as ever.
 *
 * Runs in the supervisor, as two helpers (base/helper.h) one after the other, since a process
 * namespace is entered only by the children of who asks for it: the first enters the zygote's user
 * namespace, in which it then has every capability and outside of which it has none; the second,
 * born in the zygote's process namespace, clones the set-up child. Both have the supervisor as
 * their parent, and hand that on. Nothing hostile is read. */
#include "process.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "confine/userns.h"
#include "isolation/process/zygote_impl.h"

#define STAGE	    "isolation"
#define STACK_BYTES (512u << 10) /* of the second, and of the set-up child */
#define GUARD_BYTES 4096u

struct birth {
	const struct zygote *z;
	struct setup *setup;
	unsigned base;
	char *stack;
	int pidfd;
	pid_t second;
	struct pale_err err;
};

static int fail(struct birth *b, enum pale_code code, const char *what)
{
	return err_set(&b->err, code, STAGE, errno, "cannot %s", what);
}

pid_t pid_of(int pidfd)
{
	char path[48], text[512];
	_cleanup_close_ int fd = -1;
	const char *line;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	line = strstr(text, "\nPid:");
	n = line ? strtol(line + strlen("\nPid:"), NULL, 10) : 0;
	return n > 0 ? (pid_t)n : -ESRCH;
}

/* The zygote's user is to own the box's user namespace. Plain calls: the C library would speak to
 * threads that are the supervisor's. */
static int become_owner(struct birth *b)
{
	const struct plan *plan = b->setup->plan;

	if (!plan->user_range)
		return 0;
	if (syscall(SYS_setgroups, 0, NULL) < 0 ||
	    syscall(SYS_setresgid, plan->gid, plan->gid, plan->gid) < 0 ||
	    syscall(SYS_setresuid, plan->uid, plan->uid, plan->uid) < 0)
		return fail(b, PALE_E_SYSTEM, "become the zygote's user");
	/* The change of ids took this from the memory that we share; it is how the set-up child's
	 * files in /proc are its user's, to whom it is mapped below. */
	return prctl(PR_SET_DUMPABLE, 1) < 0 ? fail(b, PALE_E_SYSTEM, "stay dumpable") : 0;
}

static int second(void *arg)
{
	struct birth *b = arg;
	struct clone_args args = {
		.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
			 CLONE_NEWCGROUP | CLONE_PIDFD | CLONE_PARENT,
		.pidfd = (uint64_t)(uintptr_t)&b->pidfd,
	};
	pid_t pid;
	long r;

	if (become_owner(b) < 0)
		return 0;
	b->setup->shared_keyring = privileges_share_keyring() == 0;
	r = syscall(SYS_clone3, &args, sizeof(args));
	if (r == 0)
		setup_run(b->setup);
	if (r < 0) {
		b->pidfd = -1;
		fail(b, PALE_E_HOST, "make the box's namespaces");
		return 0;
	}
	/* Only from the parent of its namespace. */
	if (b->setup->plan->user_range) {
		pid = pid_of(b->pidfd);
		if (pid < 0)
			err_set(&b->err, PALE_E_SYSTEM, STAGE, -pid,
				"cannot tell the set-up child's number");
		else
			(void)!userns_map_range(pid, b->base, &b->err);
	}
	return 0;
}

static int first(void *arg)
{
	struct birth *b = arg;

	if (syscall(SYS_setns, b->z->box.pidfd, CLONE_NEWUSER | CLONE_NEWPID) < 0) {
		fail(b, PALE_E_HOST, "enter the zygote's namespaces");
		return 0;
	}
	b->second = clone(second, b->stack + STACK_BYTES,
			  CLONE_VM | CLONE_FILES | CLONE_VFORK | CLONE_PARENT, b);
	if (b->second < 0)
		fail(b, PALE_E_SYSTEM, "clone a helper");
	return 0;
}

int birth(const struct zygote *z, struct setup *s, unsigned base, struct box *ret,
	  struct pale_err *err)
{
	/* Not on the stack: the helper's own is in it. */
	static struct helper helper;
	struct birth b = {.z = z, .setup = s, .base = base, .pidfd = -1, .second = -1};
	int r, dumpable = prctl(PR_GET_DUMPABLE);

	b.stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (b.stack == MAP_FAILED || mprotect(b.stack, GUARD_BYTES, PROT_NONE) < 0)
		return err_nomem(err, STAGE);
	r = helper_start(&helper, first, &b);
	if (r < 0)
		err_set(&b.err, PALE_E_SYSTEM, STAGE, -r, "cannot start a helper");
	else
		(void)helper_wait(&helper);
	while (b.second > 0 && waitpid(b.second, NULL, __WALL) < 0 && errno == EINTR)
		;
	munmap(b.stack, STACK_BYTES);
	prctl(PR_SET_DUMPABLE, dumpable == 1 ? 1 : 0);
	ret->pidfd = b.pidfd;
	ret->pid = b.pidfd < 0 ? -1 : pid_of(b.pidfd);
	if (ret->pid < 0 && b.err.code == PALE_OK)
		err_set(&b.err, PALE_E_SYSTEM, STAGE, 0, "the box's helper was killed");
	if (b.err.code == PALE_OK)
		return 0;
	*err = b.err;
	return -(int)err->code;
}
