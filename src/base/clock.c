/* Time: see clock.h. */
#include "clock.h"

#include <stdio.h>
#include <time.h>

uint64_t clock_mono_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

const char *clock_wall_text(char out[static CLOCK_TEXT])
{
	struct timespec t;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &t);
	gmtime_r(&t.tv_sec, &tm);
	strftime(out, CLOCK_TEXT, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + 19, CLOCK_TEXT - 19, ".%06uZ", (unsigned)(t.tv_nsec / 1000) % 1000000u);
	return out;
}
