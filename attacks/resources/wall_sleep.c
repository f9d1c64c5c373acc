/* A program that waits for ever. */
#include "wall.h"

ATTACK(RESOURCES, "wall", .gain = "a place on the host, held for ever", .source = "sleep(3)",
       .event = "limit.hit", .with = "limit=wall", .limit = "wall", .works = LIMIT, .flags = ALONE)
{
	wait_longer();
	return 0;
}
