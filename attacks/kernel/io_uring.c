/* A ring: system calls that the filter would never see. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "system calls that the filter would never see",
       .source = "CVE-2022-29582", .event = "call.denied", .with = "call=io_uring_setup",
       .works = OUTSIDE)
{
	char params[120] = {0};

	return syscall(SYS_io_uring_setup, 1, params);
}
