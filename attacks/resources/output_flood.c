/* More output than is allowed. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(RESOURCES, "output", .gain = "the supervisor's memory, or its disk", .source = "write(2)",
       .event = "limit.hit", .with = "limit=output_total", .limit = "output_total", .works = LIMIT,
       .flags = ALONE)
{
	static char junk[1 << 16];
	/* The box's own output, past what reads ours; outside, nowhere. */
	int out = *target("output") && !target_number("outside") ? (int)target_number("output")
								 : open("/dev/null", O_WRONLY);
	long got = 0, max = target_number("max");

	memset(junk, 'x', sizeof(junk));
	for (ssize_t n = 1; n > 0 && got <= max + (4 << 20); got += n)
		n = write(out, junk, sizeof(junk));
	/* It is ended a moment later. */
	usleep(500000);
	return got > max ? 0 : -1;
}
