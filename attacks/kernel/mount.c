/* A mount, in a mount namespace of its own if it can have one. */
#include "../attack.h"

#include <sched.h>
#include <sys/mount.h>

ATTACK(KERNEL, "calls", .gain = "a file system of its own over the box's", .source = "mount(2)",
       .event = "call.denied", .with = "call=mount", .works = AS_ROOT, .flags = NESTING)
{
	if (unshare(CLONE_NEWNS) == 0)
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	else if (geteuid() != 0)
		return mount("t", "/", "tmpfs", 0, NULL);
	else /* root in the mounts of all: nothing is mounted */
		return mount("t", "/nowhere", "tmpfs", 0, NULL);
	return mount("t", "/", "tmpfs", 0, NULL);
}
