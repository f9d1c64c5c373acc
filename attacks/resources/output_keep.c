/* More output than is kept. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(RESOURCES, "output", .gain = "the supervisor's memory, by what it keeps for the result",
       .source = "write(2)", .event = "output.cut", .limit = "output", .works = LIMIT,
       .flags = ALONE)
{
	static char junk[1 << 12];
	int out = *target("output") && !target_number("outside") ? (int)target_number("output")
								 : open("/dev/null", O_WRONLY);
	long got = 0;

	memset(junk, 'y', sizeof(junk));
	for (ssize_t n = 1; n > 0 && got <= target_number("max") * 3; got += n)
		n = write(out, junk, sizeof(junk));
	/* What is kept is seen outside only. */
	return 0;
}
