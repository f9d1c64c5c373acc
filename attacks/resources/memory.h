/* How much memory the attacks on that limit take, and by how much at a time. */
#pragma once

#include "../attack.h"

#define PIECE (4 << 20)

/* A quarter more than the limit and something, so that neither swap nor what the kernel takes back
 * matters. */
static inline long want(void)
{
	return target_number("max") / 4 * 5 + (32 << 20);
}
