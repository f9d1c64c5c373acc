/* Files for the attacks on file_size. */
#pragma once

#include "../attack.h"

#include <signal.h>

/* One without a name. Going over the limit is an error: else it is a signal, and denied as well. */
static inline int nameless_file(void)
{
	char path[] = "/tmp/attack-XXXXXX";
	int fd = mkstemp(path);

	signal(SIGXFSZ, SIG_IGN);
	unlink(path);
	return fd;
}
