/* Files in memory that are nobody's address space. */
#include "memory.h"

#include <sys/mman.h>

ATTACK(RESOURCES, "memory", .gain = "the host's memory, past every limit of a process",
       .source = "memfd_create(2)", .event = "limit.hit", .with = "limit=memory", .limit = "memory",
       .set = "limits.memory=64MiB limits.open_files=1024", .works = LIMIT, .flags = ALONE)
{
	static char junk[PIECE];

	memset(junk, 1, sizeof(junk));
	for (long got = 0; got < want(); got += PIECE) {
		int fd = memfd_create("attack", 0);

		if (fd < 0 || write(fd, junk, PIECE) != PIECE)
			return -1;
	}
	return 0;
}
