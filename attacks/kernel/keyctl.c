/* The caller's session keyring. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "the caller's session keyring", .source = "CVE-2016-0728",
       .event = "call.denied", .with = "call=keyctl", .works = OUTSIDE)
{
	return syscall(SYS_keyctl, 0 /* GET_KEYRING_ID */, -3 /* session */, 0);
}
