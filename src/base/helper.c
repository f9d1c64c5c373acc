/* Helper processes: see helper.h. Wherever it is called, with the caller's privileges. */
#include "base/helper.h"

#include <errno.h>
#include <sched.h>
#include <sys/wait.h>

static int helper_main(void *arg)
{
	struct helper *h = arg;

	h->result = h->run(h->arg);
	__atomic_store_n(&h->finished, 1, __ATOMIC_RELEASE);
	return 0;
}

int helper_start(struct helper *h, int (*run)(void *arg), void *arg)
{
	h->run = run;
	h->arg = arg;
	h->result = -EIO;
	h->finished = 0;
	h->pid = clone(helper_main, h->stack + sizeof(h->stack), CLONE_VM | CLONE_FILES, h);
	if (h->pid > 0)
		return 0;
	h->pid = 0;
	return -errno;
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
