/* Another kernel, from a file. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "another kernel, from a file", .source = "kexec_file_load(2)",
       .event = "call.denied", .with = "call=kexec_file_load", .works = SOME_KERNELS,
       .needs = "kexec_file_load()")
{
	return reached(syscall(SYS_kexec_file_load, -1, -1, 0, "", 0), EBADF);
}
