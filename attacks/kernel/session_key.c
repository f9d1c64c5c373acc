/* A key of the caller's. */
#include "../attack.h"

ATTACK(KERNEL, "privileges", .gain = "keys of the caller's: Kerberos, ecryptfs, ...",
       .source = "keyctl(2)", .event = "call.denied", .with = "call=keyctl", .works = SOME_KERNELS,
       .needs = "room for another key", .flags = QUIET)
{
	return syscall(SYS_keyctl, 10 /* SEARCH */, -3, "user", needed("key"), 0);
}
