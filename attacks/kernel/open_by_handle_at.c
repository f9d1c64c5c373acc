/* A file by its number, past every path: how containers were left in 2014. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(KERNEL, "calls", .gain = "a file by its number, past every path",
       .source = "the shocker exploit (2014)", .event = "call.denied",
       .with = "call=open_by_handle_at", .works = AS_ROOT)
{
	struct {
		struct file_handle h;
		unsigned char bytes[MAX_HANDLE_SZ];
	} handle = {.h.handle_bytes = MAX_HANDLE_SZ};
	int id, at = open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* Where the file system gives no handle, a made-up one: what matters is who may try. */
	if (name_to_handle_at(AT_FDCWD, "/usr", &handle.h, &id, 0) < 0)
		handle.h.handle_bytes = 8;
	return reached(open_by_handle_at(at, &handle.h, O_RDONLY), ESTALE);
}
