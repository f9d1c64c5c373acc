/* Staying for longer than the limit of wall time. */
#pragma once

#include "../attack.h"

#include <time.h>

static inline void wait_longer(void)
{
	struct timespec a, b;

	clock_gettime(CLOCK_MONOTONIC, &a);
	do {
		usleep(100000);
		clock_gettime(CLOCK_MONOTONIC, &b);
	} while ((b.tv_sec - a.tv_sec) * 1000 < target_number("max") + 3000);
}
