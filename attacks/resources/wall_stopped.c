/* A program that has stopped itself and all that it can. */
#include "wall.h"

#include <signal.h>

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
