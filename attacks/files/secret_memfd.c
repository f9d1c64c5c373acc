/* By a program that is in memory only. */
#include "program.h"

#include <sys/mman.h>

ATTACK(FILES, "root", .gain = "a program that no rule on paths can name",
       .source = "memfd_create(2)", .works = OUTSIDE)
{
	char path[64];
	int fd = memfd_create("attack", 0);
	char *args[] = {path, (char *)(uintptr_t)target("secret"), NULL};

	if (copy_of_cat(fd) < 0)
		return NOT_HERE;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return run_program(args);
}
