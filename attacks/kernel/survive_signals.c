/* A process that ignores every signal. */
#include "survive.h"

#include <signal.h>

static void hide(void)
{
	setsid();
	for (int n = 1; n < 65; n++)
		signal(n, SIG_IGN);
}

ATTACK(KERNEL, "processes", .gain = "a program that runs on after the box", .source = "signal(7)",
       .broken = "survived", .works = OUTSIDE, .flags = ALONE)
{
	return survive(hide);
}
