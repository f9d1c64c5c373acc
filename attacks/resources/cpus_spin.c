/* As many loops as there are processors, and one more. */
#include "../attack.h"

#include <sys/wait.h>
#include <time.h>

/* Processor time of all its own, in milliseconds. */
static long used(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

ATTACK(RESOURCES, "cpus", .gain = "all processors at a time", .source = "cpuset(7)",
       .limit = "cpus", .works = LIMIT, .flags = ALONE)
{
	int status, n = (int)sysconf(_SC_NPROCESSORS_CONF) + 1;
	long share, sum = 0;

	/* For a second and a half of the clock, each; what they used together is what counts. */
	n = n > 16 ? 16 : n;
	for (int i = 0; i < n; i++)
		if (fork() == 0) {
			struct timespec a, b;

			clock_gettime(CLOCK_MONOTONIC, &a);
			do
				clock_gettime(CLOCK_MONOTONIC, &b);
			while ((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 <
			       1500);
			_exit((int)(used() / 10));
		}
	while (wait(&status) > 0)
		sum += WEXITSTATUS(status) * 10;
	share = sum * 1000 / 1500;
	printf("%ld.%02ld processors\n", share / 1000, share % 1000 / 10);
	/* Room for how the kernel deals out a quota. */
	return share > target_number("max") * 13 / 10 + (target_number("outside") ? 0 : 150)
		       ? 0
		       : denied(EAGAIN);
}
