/* Every way to the box's first process, which holds the socket to the supervisor and the one that
 * answers name lookups: its memory, environment, program, directories, descriptors; tracing it,
 * taking a copy of a descriptor, ending it, writing to its program. Prints each that works; with a
 * number as argument, that process. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int pid = 1;

static void tell(const char *what, int worked)
{
	if (worked)
		puts(what);
}

static int can_open(const char *name, int flags)
{
	char path[64], byte;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, flags);
	/* Opening some of these is for all; what is in them is not. */
	return fd >= 0 && (flags != O_RDONLY || read(fd, &byte, 1) >= 0);
}

static int can_follow(const char *name)
{
	char path[64], target[256];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return readlink(path, target, sizeof(target)) > 0 || open(path, O_PATH) >= 0;
}

int main(int argc, char **argv)
{
	static const char *const files[] = {"environ", "auxv",	      "stack", "syscall",
					    "pagemap", "personality", "io",    "mountstats"};
	static const char *const links[] = {"cwd",  "exe",  "root", "fd/0",   "fd/3",
					    "fd/4", "fd/5", "fd/6", "ns/mnt", "ns/pid"};
	char path[64], byte;
	int pidfd;

	if (argc > 1)
		pid = (int)strtol(argv[1], NULL, 10);
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		tell(files[i], can_open(files[i], O_RDONLY));
	for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++)
		tell(links[i], can_follow(links[i]));
	tell("mem for reading", can_open("mem", O_PATH | O_RDONLY) && 0);
	tell("mem for writing", can_open("mem", O_RDWR));
	tell("exe for writing", can_open("exe", O_WRONLY));
	tell("clear_refs", can_open("clear_refs", O_WRONLY));
	tell("oom_score_adj", can_open("oom_score_adj", O_WRONLY));
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	tell("list of descriptors", opendir(path) != NULL);
	snprintf(path, sizeof(path), "/proc/%d/map_files", pid);
	tell("list of mapped files", opendir(path) != NULL);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	for (int fd = 0; fd < 10; fd++)
		tell("copy of a descriptor", syscall(SYS_pidfd_getfd, pidfd, fd, 0) >= 0);
	tell("its memory by call",
	     process_vm_readv(pid, &(struct iovec){&byte, 1}, 1,
			      &(struct iovec){(void *)0x400000, 1}, 1, 0) == 1);
	tell("its namespaces", syscall(SYS_setns, pidfd, 0x00020000) == 0);
	tell("its resource limits", syscall(SYS_prlimit64, pid, 7, &(long[2]){0, 0}, NULL) == 0);
	tell("seized", ptrace(PTRACE_SEIZE, pid, 0, 0) == 0);
	tell("traced", ptrace(PTRACE_ATTACH, pid, 0, 0) == 0);
	/* It may be asked; it does not go, nor stop. */
	for (int s = 1; s < 65; s++)
		kill(pid, argc > 1 ? 0 : s);
	if (argc == 1)
		usleep(200000);
	tell("ended it", kill(pid, 0) < 0);
	puts("tried");
	return 0;
}
