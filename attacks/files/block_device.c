/* The disk below all files. */
#include "../attack.h"

#include <fcntl.h>
#include <glob.h>

ATTACK(FILES, "root", .gain = "every file, by the disk that it is on", .source = "hier(7)",
       .works = SOME_KERNELS, .needs = "a disk")
{
	static const char *const names[] = {"/dev/sd*",	  "/dev/vd*",  "/dev/nvme*",
					    "/dev/loop*", "/dev/dm-*", "/dev/ram*"};
	long r = denied(ENOENT);

	for (size_t i = 0; r < 0 && i < sizeof(names) / sizeof(*names); i++) {
		glob_t g = {0};

		if (glob(names[i], 0, NULL, &g) == 0)
			for (size_t k = 0; r < 0 && k < g.gl_pathc; k++)
				r = open(g.gl_pathv[k], O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		globfree(&g);
	}
	return r;
}
