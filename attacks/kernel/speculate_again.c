/* The processor guesses past stores again, where the policy has it stop. */
#include "../attack.h"

#include <sys/prctl.h>

ATTACK(KERNEL, "speculation", .gain = "speculation past stores, for reading by side channels",
       .source = "Documentation/userspace-api/spec_ctrl.rst", .works = SOME_KERNELS,
       .needs = "a processor whose store bypass each process controls")
{
	long r = prctl(PR_GET_SPECULATION_CTRL, PR_SPEC_STORE_BYPASS, 0, 0, 0);

	if (r < 0 || !((unsigned long)r & PR_SPEC_PRCTL))
		return NOT_HERE;
	return prctl(PR_SET_SPECULATION_CTRL, PR_SPEC_STORE_BYPASS, PR_SPEC_ENABLE, 0, 0);
}
