/* Memory that is shared, which no limit of a process counts. */
#include "memory.h"

#include <sys/mman.h>

ATTACK(RESOURCES, "memory", .gain = "the host's memory, past RLIMIT_DATA", .source = "mmap(2)",
       .event = "limit.hit", .with = "limit=memory", .limit = "memory",
       .set = "limits.memory=64MiB", .works = LIMIT, .flags = ALONE)
{
	for (long got = 0; got < want(); got += PIECE) {
		char *p = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			       0);

		if (p == MAP_FAILED)
			return -1;
		memset(p, 1, PIECE);
	}
	return 0;
}
