/* Read-only taken off a mount: here, nothing changed on it. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "read-only taken off a mount",
       .source = "mount_setattr(2); CVE-2026-46695", .event = "call.denied",
       .with = "call=mount_setattr", .works = AS_ROOT, .flags = NESTING)
{
	uint64_t attr[4] = {0};

	return syscall(SYS_mount_setattr, -100, "/", 0, attr, sizeof(attr));
}
