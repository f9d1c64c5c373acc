/* Takes a descriptor of the broker or the supervisor: their processes must not be there to ask. */
#include "../attack.h"

#include <dirent.h>
#include <fcntl.h>

ATTACK(NETWORK, "egress", .gain = "the broker's descriptors", .source = "proc(5)",
       .works = SOME_KERNELS, .needs = "a broker", .flags = NETWORKS)
{
	for (int pid = 1; pid < 65536; pid++) {
		char path[64], comm[32] = "";
		int fd;

		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		fd = open(path, O_RDONLY);
		if (fd < 0)
			continue;
		if (read(fd, comm, sizeof(comm) - 1) > 0 && strncmp(comm, "pale-egress", 11) == 0)
			return 0;
		close(fd);
	}
	errno = ESRCH;
	return -1;
}
