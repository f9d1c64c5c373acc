/* As many loops as there are processors, and one more. */
#include "../attack.h"

#include <sched.h>
#include <sys/wait.h>
#include <time.h>

#define SPIN_MS 1500

static long now_ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The processors that it can run on, in thousandths. Where there is a quota ("widen") it asks for
 * all first: it gets them, and the quota has to hold. */
static long may_use(void)
{
	cpu_set_t all;

	memset(&all, 0xff, sizeof(all));
	if (*target("widen"))
		(void)!sched_setaffinity(0, sizeof(all), &all);
	return sched_getaffinity(0, sizeof(all), &all) < 0 ? -1 : CPU_COUNT(&all) * 1000L;
}

ATTACK(RESOURCES, "cpus", .gain = "all processors at a time", .source = "cpuset(7)",
       .limit = "cpus", .works = LIMIT, .flags = ALONE)
{
	int status, n = (int)sysconf(_SC_NPROCESSORS_CONF) + 1;
	long max = target_number("max"), begun, passed, may = may_use(), sum = 0;

	n = n > 16 ? 16 : n;
	begun = now_ms(CLOCK_MONOTONIC);
	for (int i = 0; i < n; i++)
		if (fork() == 0) {
			while (now_ms(CLOCK_MONOTONIC) - begun < SPIN_MS)
				;
			_exit((int)(now_ms(CLOCK_PROCESS_CPUTIME_ID) / 10));
		}
	while (wait(&status) > 0)
		sum += WEXITSTATUS(status) * 10;
	/* All of it was used in this time: where others want the processors too it is less, never
	 * more. Room for how the kernel deals out a quota. */
	passed = now_ms(CLOCK_MONOTONIC) - begun;
	printf("%ld.%02ld processors\n", sum / passed, sum * 100 / passed % 100);
	if (sum > max * (passed + 200) / 1000 + 50)
		return 0;
	/* EINVAL: there is no way to more. EAGAIN: there is, but for the limit, or for others who
	 * are busy: the kernel has counted which (src/verify/boxes.c). */
	return denied(may >= 0 && may <= max ? EINVAL : EAGAIN);
}
