/* More dead processes that nobody waits for than are allowed. */
#include "../attack.h"

/* The runner and the first process count as well. */
static long enough(long got)
{
	printf("got %ld\n", got);
	return got > target_number("max") ? 0 : denied(EAGAIN);
}

ATTACK(RESOURCES, "processes", .gain = "the host's process numbers, by what uses nothing else",
       .source = "wait(2)", .event = "limit.hit", .with = "limit=processes", .limit = "processes",
       .works = LIMIT, .flags = ALONE)
{
	long got = 1;

	for (; got < target_number("max") + 32; got++) {
		pid_t pid = fork();

		if (pid < 0)
			break;
		if (pid == 0)
			_exit(0);
	}
	usleep(300000);
	return enough(got);
}
