/* Processors: see affinity.h. In the set-up child; needs no privilege. */
#include "affinity.h"

#include <sched.h>

#define STAGE "confine"

/* A caller that runs in real time must not have the box take the host from all others;
 * nor could it join a control group for processors then. */
static int leave_real_time(struct pale_err *err)
{
	int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;

	if (policy != SCHED_FIFO && policy != SCHED_RR)
		return 0;
	return sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0}) < 0
		       ? err_set(err, PALE_E_SYSTEM, STAGE, errno,
				 "cannot leave real-time scheduling")
		       : 0;
}

int affinity_narrow(unsigned count, unsigned seed, struct pale_err *err)
{
	cpu_set_t now, narrow;
	unsigned have, at;
	int r = leave_real_time(err);

	if (r < 0)
		return r;

	if (sched_getaffinity(0, sizeof(now), &now) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot tell the processors");
	have = (unsigned)CPU_COUNT(&now);
	if (count == 0 || count >= have)
		return 0;
	CPU_ZERO(&narrow);
	/* The first is the seed-th of those allowed, and from there on in a ring. */
	at = 0;
	for (unsigned skip = seed % have; skip || !CPU_ISSET(at, &now); at++)
		if (CPU_ISSET(at, &now))
			skip--;
	for (; count; at = (at + 1) % CPU_SETSIZE)
		if (CPU_ISSET(at, &now)) {
			CPU_SET(at, &narrow);
			count--;
		}
	if (sched_setaffinity(0, sizeof(narrow), &narrow) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot narrow the processors");
	return 0;
}
