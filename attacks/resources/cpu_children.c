/* The same in children that come and go. */
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

ATTACK(RESOURCES, "cpu", .gain = "a processor, past a limit that counts for one process",
       .source = "setrlimit(2)", .event = "limit.hit", .with = "limit=cpu", .limit = "cpu",
       .works = LIMIT, .flags = ALONE)
{
	for (long i = 0; i < target_number("max") / 50 + 20; i++) {
		if (fork() == 0) {
			while (used() < 50)
				;
			_exit(0);
		}
		wait(NULL);
	}
	return 0;
}
