/* How much a box counts on a processor that others want, too.
 *
 * A box begins with the weight of any other group of processes. One that keeps its processors busy
 * gets a low one, until it does so no more: then a neighbour that works a little now and then, or
 * the host itself, is served at once, and the busy one has all that is left over. Nothing changes
 * where nobody else wants the processor. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SHARE_THREADS 16

struct run;

struct share {
	bool low;
	uint64_t at_us, cpu_us;	    /* the last look: when, and what the box had used */
	uint64_t low_us, normal_us; /* when it was made so */
	struct {
		pid_t tid;
		uint64_t wanted_us; /* how long it ran, or would have liked to */
	} threads[SHARE_THREADS];   /* as they were at the last look */
	uint64_t stays_us;	    /* how long it is low at least */
};

/* Somebody waits for what it does next: it counts as any other, until the next look. */
void share_hurry(struct run *run);
/* cpu_us: what the box has used up to now. Returns in how many milliseconds to look again. */
uint64_t share_look(struct run *run, uint64_t cpu_us);
