/* Memory of many processes, each within what one may have. */
#include "memory.h"

#include <sys/mman.h>
#include <sys/wait.h>

ATTACK(RESOURCES, "memory", .gain = "the host's memory, past limits that count for one process",
       .source = "setrlimit(2)", .event = "limit.hit", .with = "limit=memory", .limit = "memory",
       .set = "limits.memory=64MiB limits.processes=64", .works = LIMIT, .flags = ALONE)
{
	for (int i = 0; i < 8; i++)
		if (fork() == 0) {
			char *p = mmap(NULL, (size_t)want() / 8, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			if (p == MAP_FAILED)
				_exit(2);
			memset(p, 1, (size_t)want() / 8);
			/* All of it at a time; and so that it is not left out. */
			sleep(3);
			_exit(p[1] != 1);
		}
	for (int i = 0, status; i < 8; i++)
		if (wait(&status) < 0 || status != 0)
			return denied(ENOMEM);
	return 0;
}
