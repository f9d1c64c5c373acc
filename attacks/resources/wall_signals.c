/* The same, deaf to every signal, in processes that are nobody's children. */
#include "wall.h"

#include <signal.h>

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
