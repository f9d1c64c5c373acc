/* The host's connections. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(NETWORK, "egress", .gain = "who the host speaks to", .source = "proc_net(5)",
       .works = OUTSIDE)
{
	char want[16], line[256];
	FILE *f = fopen("/proc/net/tcp", "re");

	snprintf(want, sizeof(want), ":%04lX ", (unsigned long)needed_number("port"));
	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, want))
			return 0;
	return denied(ENOENT);
}
