/* A program that waits for ever. */
#include "../attack.h"

#include <time.h>

static void wait_longer(void)
{
	struct timespec a, b;

	clock_gettime(CLOCK_MONOTONIC, &a);
	do {
		usleep(100000);
		clock_gettime(CLOCK_MONOTONIC, &b);
	} while ((b.tv_sec - a.tv_sec) * 1000 < target_number("max") + 3000);
}

ATTACK(RESOURCES, "wall", .gain = "a place on the host, held for ever", .source = "sleep(3)",
       .event = "limit.hit", .with = "limit=wall", .limit = "wall", .works = LIMIT, .flags = ALONE)
{
	wait_longer();
	return 0;
}
