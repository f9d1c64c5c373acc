/* A loop without an end. */
#include "../attack.h"

#include <time.h>

/* Processor time of all its own, in milliseconds. */
static long used(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

ATTACK(RESOURCES, "cpu", .gain = "a processor", .source = "the first thing that goes wrong",
       .event = "limit.hit", .with = "limit=cpu", .limit = "cpu", .works = LIMIT, .flags = ALONE)
{
	while (used() < target_number("max") + 500)
		;
	return 0;
}
