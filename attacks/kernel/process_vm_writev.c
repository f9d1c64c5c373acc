/* Memory of another process: write into it. */
#include "../attack.h"

#include <sys/uio.h>

ATTACK(KERNEL, "calls", .gain = "the memory of another process, to write into",
       .source = "process_vm_writev(2)", .event = "call.denied", .with = "call=process_vm_writev",
       .works = OUTSIDE)
{
	char byte = 'x';
	struct iovec here = {&byte, 1}, there = {&byte, 1};

	return process_vm_writev(getppid(), &here, 1, &there, 1, 0) == 1 ? 0 : reached(-1, EFAULT);
}
