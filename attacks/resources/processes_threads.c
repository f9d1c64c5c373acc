/* More threads than are allowed. */
#include "../attack.h"

#include <pthread.h>

/* The runner and the first process count as well. */
static long enough(long got)
{
	printf("got %ld\n", got);
	return got > target_number("max") ? 0 : denied(EAGAIN);
}

static void *wait_for_ever(void *arg)
{
	pause();
	return arg;
}

ATTACK(RESOURCES, "processes", .gain = "the host's process numbers, by what is no process",
       .source = "pthreads(7)", .event = "limit.hit", .with = "limit=processes",
       .limit = "processes", .works = LIMIT, .flags = ALONE)
{
	long got = 1;
	pthread_attr_t small;
	pthread_t t;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	while (got < target_number("max") + 32 &&
	       pthread_create(&t, &small, wait_for_ever, NULL) == 0)
		got++;
	usleep(300000);
	return enough(got);
}
