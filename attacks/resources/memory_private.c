/* Memory of one process. */
#include "memory.h"

#include <sys/mman.h>

ATTACK(RESOURCES, "memory", .gain = "the host's memory, until its own programs are killed",
       .source = "mmap(2)", .event = "limit.hit", .with = "limit=memory", .limit = "memory",
       .works = LIMIT, .flags = ALONE)
{
	for (long got = 0; got < want(); got += PIECE) {
		char *p = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);

		if (p == MAP_FAILED)
			return -1;
		memset(p, 1, PIECE);
	}
	return 0;
}
