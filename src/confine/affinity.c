/* Processors: see affinity.h. In the set-up child; needs no privilege. */
#include "affinity.h"

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

int affinity_get(cpu_set_t *ret, struct pale_err *err)
{
	return sched_getaffinity(0, sizeof(*ret), ret) < 0
		       ? err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot tell the processors")
		       : 0;
}

void affinity_spread(pid_t pid, const cpu_set_t *allowed)
{
	cpu_set_t others = *allowed;
	int here = sched_getcpu();

	if (here < 0 || here >= CPU_SETSIZE)
		return;
	CPU_CLR((unsigned)here, &others);
	if (CPU_COUNT(&others) > 0)
		(void)sched_setaffinity(pid, sizeof(others), &others);
}

int affinity_narrow(unsigned count, const cpu_set_t *allowed, struct pale_err *err)
{
	unsigned have = (unsigned)CPU_COUNT(allowed), at;
	int here = sched_getcpu(), r = leave_real_time(err);
	cpu_set_t narrow = *allowed;

	if (r < 0)
		return r;
	if (count > 0 && count < have) {
		CPU_ZERO(&narrow);
		/* From there on in a ring. */
		for (at = here < 0 ? 0 : (unsigned)here; count; at = (at + 1) % CPU_SETSIZE)
			if (CPU_ISSET(at, allowed)) {
				CPU_SET(at, &narrow);
				count--;
			}
	}
	/* Also where nothing is taken away: the process may have been spread. */
	if (sched_setaffinity(0, sizeof(narrow), &narrow) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot narrow the processors");
	return 0;
}
