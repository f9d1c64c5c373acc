/* Programs as an agent may have written them: the reader must end, within bounds, and what it gives
 * back must be whole strings. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "plan/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct elf_info info;
	_cleanup_close_ int fd = memfd_create("elf", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size || elf_read(fd, &info) < 0)
		return 0;
	if (info.nneeded > ELF_MAX_NEEDED ||
	    strnlen(info.interp, sizeof(info.interp)) == sizeof(info.interp) ||
	    strnlen(info.search, sizeof(info.search)) == sizeof(info.search))
		__builtin_trap();
	for (size_t i = 0; i < info.nneeded; i++)
		if (info.needed[i] < info.names ||
		    info.needed[i] + strlen(info.needed[i]) >= info.names + sizeof(info.names))
			__builtin_trap();
	return 0;
}
