/* By a copy of a program under another name. */
#include "program.h"

#include <sys/stat.h>

ATTACK(FILES, "root", .gain = "a program that is denied, by another name",
       .source = "rules on the names of commands", .works = OUTSIDE)
{
	char path[] = "/tmp/attack-cat-XXXXXX";
	char *args[] = {path, (char *)(uintptr_t)target("secret"), NULL};
	int fd = mkstemp(path);
	long r;

	if (copy_of_cat(fd) < 0 || fchmod(fd, 0700) < 0)
		return NOT_HERE;
	close(fd);
	r = run_program(args);
	unlink(path);
	return r;
}
