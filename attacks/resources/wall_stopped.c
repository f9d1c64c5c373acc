/* A program that has stopped itself and all that it can. */
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

ATTACK(RESOURCES, "wall", .gain = "a place on the host, held by what does not run",
       .source = "signal(7)", .event = "limit.hit", .with = "limit=wall", .limit = "wall",
       .works = LIMIT, .flags = ALONE)
{
	if (fork() == 0) {
		/* Somebody has to be able to say that it was let. */
		wait_longer();
		kill(getppid(), SIGCONT);
		_exit(0);
	}
	kill(getpid(), SIGSTOP);
	return 0;
}
