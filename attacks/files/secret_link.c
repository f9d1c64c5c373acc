/* By a symbolic link of the attack's own, which somebody follows outside or not at all. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(FILES, "root", .gain = "any file of the caller's, by a link that leaves the workspace",
       .source = "CVE-2026-39861", .works = OUTSIDE)
{
	char path[] = "/tmp/attack-link-XXXXXX";
	long r;

	if (!mkdtemp(path) || rmdir(path) < 0 || symlink(target("secret"), path) < 0)
		return NOT_HERE;
	r = read_canary(open(path, O_RDONLY | O_CLOEXEC));
	unlink(path);
	return r;
}
