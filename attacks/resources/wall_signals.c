/* The same, deaf to every signal, in processes that are nobody's children. */
#include "../attack.h"

#include <signal.h>
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

ATTACK(RESOURCES, "wall", .gain = "a place on the host, held by what cannot be told to end",
       .source = "signal(7)", .event = "limit.hit", .with = "limit=wall", .limit = "wall",
       .works = LIMIT, .flags = ALONE)
{
	for (int n = 1; n < 65; n++)
		signal(n, SIG_IGN);
	for (int i = 0; i < 4; i++)
		if (fork() == 0) {
			setsid();
			if (fork() == 0)
				wait_longer();
			_exit(0);
		}
	wait_longer();
	return 0;
}
