/* A lever: the process whose number the supervisor is told for an execution.
 *
 * A SIGINT for it becomes one for the interpreter, if that can take one now, and in any case wakes
 * the host; a SIGKILL for it is the demand to end the execution whatever it takes, and the host,
 * which reaps it, can do that with more care than the signal could. There are two, for one
 * execution and the next in turn: a signal that comes late hits nobody.
 *
 * A child of the host and a copy of it; it reads nothing. */
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host.h"

bool page_signal(struct page *p, unsigned who, uint32_t id)
{
	uint32_t armed;
	bool sent = false;

	p->busy[who] = 1;
	/* Taken out: one signal is enough until it is armed anew. */
	armed = p->armed;
	if (armed && (!id || armed == id) && atomic_compare_exchange_strong(&p->armed, &armed, 0)) {
		sent = kill(p->target, SIGINT) == 0;
		p->sent += sent;
	}
	p->busy[who] = 0;
	return sent;
}

void page_disarm(struct page *p)
{
	p->armed = 0;
	/* A lever may be stopped, by whoever did that in its own box: not waited for long. */
	for (unsigned i = 0; (p->busy[0] || p->busy[1]) && i < 10000; i++)
		sched_yield();
}

pid_t lever_start(struct host *h, unsigned which)
{
	struct page *page = h->page;
	pid_t parent = getpid(), pid = fork();
	/* Each has its half of the counter. */
	uint64_t one = which ? (uint64_t)1 << 32 : 1;
	uint32_t id;
	sigset_t set;
	int number;

	if (pid)
		return pid;
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	prctl(PR_SET_NAME, "pale-lever");
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_SETMASK, &set, NULL);
	if (h->events != 0 && dup2(h->events, 0) < 0)
		_exit(1);
	syscall(SYS_close_range, 1U, UINT_MAX, 0U);
	for (;;) {
		if (sigwait(&set, &number) != 0)
			_exit(1);
		/* The number first: if it is a new execution's, its lever is already another one.
		 */
		id = page->running;
		if (page->lever != which)
			continue;
		page->wanted = id;
		page_signal(page, which, id);
		if (write(0, &one, sizeof(one)) < 0)
			_exit(1);
	}
}
