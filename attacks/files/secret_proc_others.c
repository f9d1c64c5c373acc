/* Through the root or working directory of any other process. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(FILES, "root", .gain = "any file of the caller's, through a process that sees more",
       .source = "proc_pid_cwd(5)", .works = OUTSIDE)
{
	static const char *const ways[] = {"root", "cwd", "cwd/../../../../../../../.."};

	for (int pid = 1; pid < 65536; pid++)
		for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
			char path[600];

			snprintf(path, sizeof(path), "/proc/%d/%s%s", pid, ways[i],
				 target("secret"));
			if (read_canary(open(path, O_RDONLY | O_CLOEXEC)) == 0)
				return 0;
		}
	return denied(ENOENT);
}
