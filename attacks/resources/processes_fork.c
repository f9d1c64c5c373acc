/* More processes than are allowed. */
#include "../attack.h"

#include <signal.h>

/* The runner and the first process count as well. */
static long enough(long got)
{
	printf("got %ld\n", got);
	return got > target_number("max") ? 0 : denied(EAGAIN);
}

ATTACK(RESOURCES, "processes",
       .gain = "the host's process numbers: nothing can be started any more", .source = "fork(2)",
       .event = "limit.hit", .with = "limit=processes", .limit = "processes", .works = LIMIT,
       .flags = ALONE)
{
	long got = 1;

	for (; got < target_number("max") + 32; got++) {
		pid_t pid = fork();

		if (pid < 0)
			break;
		if (pid == 0) {
			pause();
			_exit(0);
		}
	}
	usleep(300000);
	got = enough(got);
	signal(SIGTERM, SIG_IGN);
	kill(0, SIGTERM);
	return got;
}
