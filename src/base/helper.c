/* Helper processes: see helper.h. Wherever it is called, with the caller's privileges. */
#include "base/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>

#include "base/sanitized.h"

#define DESCRIPTORS 256 /* more than a box takes to be made, if its policy is not very long */

static int helper_main(void *arg)
{
	struct helper *h = arg;

	h->result = h->run(h->arg);
	__atomic_store_n(&h->finished, 1, __ATOMIC_RELEASE);
	return 0;
}

/* A table of descriptors that is shared grows only after all processors have been waited for (RCU),
 * which takes 10 ms; not so before. */
static void make_room(void)
{
	int high = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, DESCRIPTORS - 1);

	if (high >= 0)
		close(high);
}

static int start(struct helper *h, int (*run)(void *arg), void *arg, int flags)
{
	make_room();
	h->run = run;
	h->arg = arg;
	h->result = -EIO;
	h->finished = 0;
	h->pid = clone(helper_main, h->stack + sizeof(h->stack), flags | CLONE_FILES, h);
	if (h->pid > 0)
		return 0;
	h->pid = 0;
	return -errno;
}

int helper_start(struct helper *h, int (*run)(void *arg), void *arg)
{
	return start(h, run, arg, CLONE_BESIDE);
}

int helper_start_waiting(struct helper *h, int (*run)(void *arg), void *arg)
{
	return start(h, run, arg, CLONE_VM);
}

bool helper_finished(const struct helper *h)
{
	return __atomic_load_n(&h->finished, __ATOMIC_ACQUIRE);
}

int helper_wait(struct helper *h)
{
	if (h->pid)
		while (waitpid(h->pid, NULL, __WALL) < 0 && errno == EINTR)
			;
	h->pid = 0;
	return h->result;
}
