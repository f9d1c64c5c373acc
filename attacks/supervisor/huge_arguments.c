/* Paths and addresses at every edge, in calls that the supervisor reads: lengths around each limit,
 * the end of memory, pointers to nowhere, descriptors that are none, and bytes that no terminal or
 * JSON likes. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void with_path(const char *path, int dir)
{
	close(openat(dir, path, O_CREAT | O_WRONLY, 0600));
	mkdirat(dir, path, 0700);
	renameat(dir, path, dir, "/usr/x");
	(void)!symlinkat("x", dir, path);
	unlinkat(dir, path, 0);
	(void)!truncate(path, 0);
	syscall(SYS_execve, path, NULL, NULL);
}

int main(void)
{
	static const long wild[] = {
		0, 1, -1, 4095, LONG_MAX, LONG_MIN, 0x7fffffffffff, 0x7ffffffff000};
	static const size_t lengths[] = {1,    255,  256,  1023, 1024, 4000, 4090,
					 4094, 4095, 4096, 4097, 8192, 20000};
	char *memory =
		mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct msghdr m = {0};
	int s = socket(AF_INET, SOCK_DGRAM, 0);

	munmap(memory + 32768, 32768);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
		for (int fill = 0; fill < 5; fill++) {
			char *path = memory + 32768 - lengths[i]; /* without a NUL: the page ends */

			memset(path, "a/\x01\x1b\xff"[fill], lengths[i]);
			with_path(path, AT_FDCWD);
			memcpy(path, "/usr/", lengths[i] < 5 ? lengths[i] : 5);
			with_path(path, AT_FDCWD);
			path[lengths[i] - 1] = 0;
			with_path(path, AT_FDCWD);
			with_path(path, 12345);
		}
	/* A working directory whose path is as long as it gets. */
	for (int i = 0; i < 60; i++) {
		char name[201];

		memset(name, 'd', 200);
		name[200] = 0;
		if (i == 0 && chdir("/tmp") < 0)
			break;
		if (mkdir(name, 0700) < 0 || chdir(name) < 0)
			break;
		with_path("../../../../../../usr/x", AT_FDCWD);
	}
	for (size_t i = 0; i < sizeof(wild) / sizeof(*wild); i++)
		for (size_t j = 0; j < sizeof(wild) / sizeof(*wild); j++) {
			syscall(SYS_openat, wild[j], wild[i], O_WRONLY | O_CREAT, 0);
			syscall(SYS_openat2, AT_FDCWD, wild[i], wild[j], 24);
			syscall(SYS_connect, s, wild[i], wild[j]);
			syscall(SYS_connect, wild[j], wild[i], 16);
			syscall(SYS_sendto, s, "x", 1, 0, wild[i], wild[j]);
			syscall(SYS_sendmsg, s, wild[i], 0);
			syscall(SYS_sendmmsg, s, wild[i], wild[j], 0);
			m.msg_name = (void *)wild[i];
			m.msg_namelen = (socklen_t)wild[j];
			syscall(SYS_sendmsg, s, &m, 0);
			syscall(SYS_clone3, wild[i], wild[j]);
			syscall(SYS_renameat2, wild[j], wild[i], AT_FDCWD, wild[i], 0);
			syscall(SYS_write, 2, wild[i], 0);
		}
	puts("tried");
	return 0;
}
