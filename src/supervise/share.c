/* The weight of a box: see share.h. In the supervisor, at the looks that limits.c takes; all that
 * it reads is a number of the kernel's. That the weight cannot be set, on a host where somebody
 * else has a hand in the group, costs a neighbour some time and no limit: it is not an error. */
#include "supervise/share.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "supervise/run.h"

#define WINDOW_US    250000 /* shorter, and any program that starts would be busy */
#define LOOK_MS	     500
#define STAYS_US     500000
#define STAYS_MAX_US 8000000 /* of one that becomes busy again as soon as it may */
#define SOON_US	     2000000

/* Of a thread: the time in which it ran, or waited for a processor; 0: it is not known. */
static uint64_t wanted_us(pid_t tid)
{
	unsigned long long ran, waited;
	char path[48], text[96];
	_cleanup_close_ int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	return sscanf(text, "%llu %llu", &ran, &waited) == 2 ? (ran + waited) / 1000 : 0;
}

/* Whether one of its threads never slept since the last look. It may have got little all the same:
 * there are others like it. */
static bool never_slept(struct run *run, uint64_t passed_us)
{
	struct share *s = &run->share, now = {0};
	pid_t tids[SHARE_THREADS];
	size_t n = cgroup_threads(run->cgroup, tids, SHARE_THREADS);
	bool found = false;

	for (size_t i = 0; i < n; i++) {
		now.threads[i].tid = tids[i];
		now.threads[i].wanted_us = wanted_us(tids[i]);
		for (size_t j = 0; j < SHARE_THREADS; j++)
			if (s->threads[j].tid == tids[i] && s->threads[j].wanted_us)
				found |= now.threads[i].wanted_us >
					 s->threads[j].wanted_us + passed_us / 10 * 9;
	}
	memcpy(s->threads, now.threads, sizeof(s->threads));
	return found;
}

/* Low, it may have used little because it got little. So it is tried, and if it is busy again at
 * once the next try is later. */
static void change(struct run *run, bool low, uint64_t now_us)
{
	struct share *s = &run->share;

	s->low = low;
	cgroup_weigh(run->cgroup, low);
	if (!low) {
		s->normal_us = now_us;
		return;
	}
	if (s->stays_us && now_us - s->normal_us < SOON_US)
		s->stays_us = s->stays_us < STAYS_MAX_US ? s->stays_us * 2 : STAYS_MAX_US;
	else
		s->stays_us = STAYS_US;
	s->low_us = now_us;
}

void share_hurry(struct run *run)
{
	struct share *s = &run->share;

	if (!s->low)
		return;
	change(run, false, clock_mono_us());
	/* What it did up to now says nothing of what it does now. */
	s->at_us = s->normal_us;
	(void)!cgroup_cpu_us(run->cgroup, &s->cpu_us);
	memset(s->threads, 0, sizeof(s->threads));
}

uint64_t share_look(struct run *run, uint64_t cpu_us)
{
	uint64_t now_us = clock_mono_us(), passed_us, all_us, used_us, cpus_milli;
	struct share *s = &run->share;
	bool busy;

	if (!run->cgroup || !run->plan->cgroup_limits.cpus_milli)
		return LOOK_MS;
	if (!s->at_us)
		s->at_us = run->started_us;
	passed_us = now_us - s->at_us;
	if (passed_us < WINDOW_US)
		return (WINDOW_US - passed_us) / 1000 + 1;
	/* Of one processor, or of what it may have of it. */
	cpus_milli = run->plan->limits.cpus_milli < 1000 ? run->plan->limits.cpus_milli : 1000;
	all_us = passed_us * cpus_milli / 1000;
	used_us = cpu_us > s->cpu_us ? cpu_us - s->cpu_us : 0;
	s->at_us = now_us;
	s->cpu_us = cpu_us;
	/* What used next to nothing needs no second look, unless others may have kept it from more.
	 */
	busy = used_us * 2 >= all_us ||
	       ((s->low || used_us * 20 >= all_us) && never_slept(run, passed_us));
	if (!s->low && busy)
		change(run, true, now_us);
	else if (s->low && !busy && used_us * 10 < all_us * 3 && now_us - s->low_us >= s->stays_us)
		change(run, false, now_us);
	return LOOK_MS;
}
