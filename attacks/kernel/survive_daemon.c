/* A process of a session of its own, whose parent has ended. */
#include "survive.h"

static void hide(void)
{
	setsid();
}

ATTACK(KERNEL, "processes", .gain = "a program that runs on after the box", .source = "daemon(7)",
       .broken = "survived", .works = OUTSIDE, .flags = ALONE)
{
	return survive(hide);
}
