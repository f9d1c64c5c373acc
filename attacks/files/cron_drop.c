/* A job for the host's cron. */
#include "../attack.h"

ATTACK(FILES, "root", .gain = "a program that runs after the box, outside", .source = "cron(8)",
       .works = SOME_KERNELS, .needs = "cron")
{
	static const char *const dirs[] = {"/var/spool/cron", "/etc/cron.d",
					   "/var/spool/cron/crontabs"};

	for (size_t i = 0; i < sizeof(dirs) / sizeof(*dirs); i++)
		if (access(dirs[i], W_OK) == 0)
			return 0;
	return denied(ENOENT);
}
