/* A program with the setuid bit in what is copied out. */
#include "../attack.h"

#include <fcntl.h>
#include <sys/stat.h>

ATTACK(FILES, "results", .gain = "a program that gives whoever runs it the owner's rights",
       .source = "CVE-2021-4034", .broken = "collected-setuid", .works = OUTSIDE)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/setuid", target("collect"));
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	return fd < 0 ? -1 : fchmod(fd, 06755);
}
