/* Any setting of the kernel's that can be written. */
#include "../attack.h"

#include <dirent.h>
#include <fcntl.h>

/* Settings of a namespace, which are a box's own. */
static bool of_namespace(const char *path)
{
	static const char *const own[] = {
		"/proc/sys/fs/mqueue/",		"/proc/sys/net/",	   "/proc/sys/user/",
		"/proc/sys/kernel/msg",		"/proc/sys/kernel/shm",	   "/proc/sys/kernel/sem",
		"/proc/sys/kernel/auto_msgmni", "/proc/sys/kernel/pid_max"};

	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (strncmp(path, own[i], strlen(own[i])) == 0)
			return true;
	return false;
}

static long try(const char *dir, int depth)
{
	DIR *d = depth < 8 ? opendir(dir) : NULL;
	struct dirent *e;
	long r = denied(EACCES);

	while (d && r < 0 && (e = readdir(d))) {
		char path[1024];
		int fd;

		if (*e->d_name == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (e->d_type == DT_DIR) {
			r = try(path, depth + 1);
			continue;
		}
		/* Everybody may open this one, and write to it with a capability only. */
		if (strcmp(e->d_name, "ns_last_pid") == 0 || of_namespace(path))
			continue;
		fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
		if (fd >= 0) {
			close(fd);
			puts(path);
			r = 0;
		}
	}
	if (d)
		closedir(d);
	return r;
}

ATTACK(KERNEL, "privileges", .gain = "the host's kernel, set otherwise", .source = "proc_sys(5)",
       .works = AS_ROOT)
{
	return try("/proc/sys", 0);
}
