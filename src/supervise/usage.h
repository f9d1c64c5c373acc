/* What a box uses, where no control group counts it: by looking at its processes.
 *
 * Runs in the supervisor, outside the box; the box decides everything that is read. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/err.h"

struct usage; /* opaque; one box */

/* What is watched; 0 where nothing is: it then costs nothing to sample. */
struct usage_budget {
	uint64_t cpu_us;
	uint64_t memory_bytes;
	uint64_t processes;
	int tmpfs[4];  /* descriptors of the box's writable file systems, whose pages are its memory
			*/
	size_t ntmpfs; /* borrowed */
	int shm;       /* its /proc/sysvipc/shm, borrowed; 0 or less: none */
	unsigned cpus; /* processors it may use at a time, at least 1 */
};

struct usage_now {
	uint64_t cpu_us;
	uint64_t memory_bytes; /* anonymous, by proportional share if that was needed; shared memory
				* and the writable file systems once */
	uint64_t memory_peak_bytes; /* the largest seen so far */
	uint64_t processes, threads;
	uint64_t processes_peak; /* tasks: threads count */
	bool cpu_over, memory_over, processes_over;
	unsigned next_sample_ms; /* when to sample again, so that a limit is not overrun by much */
};

/* init is the box's first process, in our view of /proc; command: one that is not its child, with
 * what it starts, or 0. */
int usage_new(pid_t init, pid_t command, const struct usage_budget *budget, struct usage **ret,
	      struct pale_err *err) _must_check_;
void usage_free(struct usage *u);
static inline void usage_freep(struct usage **u)
{
	usage_free(*u);
}

/* When the first sample is due. */
unsigned usage_first_ms(const struct usage *u);

/* Looks at every process of the box. PALE_E_NOTFOUND once the first process is gone. */
int usage_sample(struct usage *u, struct usage_now *ret, struct pale_err *err) _must_check_;
