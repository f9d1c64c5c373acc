/* Segments of one's own. */
#include "../attack.h"

#ifdef SYS_modify_ldt
#include <asm/ldt.h>
#endif

ATTACK(KERNEL, "calls", .gain = "segments of its own", .source = "CVE-2017-17053",
       .event = "call.denied", .with = "call=modify_ldt", .works = OUTSIDE)
{
#ifdef SYS_modify_ldt
	struct user_desc d = {.entry_number = 1, .limit = 1, .seg_32bit = 1, .useable = 1};

	return syscall(SYS_modify_ldt, 1, &d, sizeof(d));
#else
	return NOT_HERE;
#endif
}
