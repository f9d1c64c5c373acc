/* Memory of another process: read from it. */
#include "../attack.h"

#include <sys/uio.h>

ATTACK(KERNEL, "calls", .gain = "the memory of another process", .source = "process_vm_readv(2)",
       .event = "call.denied", .with = "call=process_vm_readv", .works = OUTSIDE)
{
	char byte = 'x';
	struct iovec here = {&byte, 1}, there = {&byte, 1};

	return process_vm_readv(getppid(), &here, 1, &there, 1, 0) == 1 ? 0 : reached(-1, EFAULT);
}
