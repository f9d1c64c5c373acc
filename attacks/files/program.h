/* Programs that read the secret for an attack. */
#pragma once

#include "../attack.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/wait.h>

/* 0: what a program that is run so prints has the canary. */
static inline long run_program(char *const *args)
{
	int p[2];
	long r;
	pid_t pid;

	if (pipe2(p, O_CLOEXEC) < 0 || (pid = fork()) < 0)
		return -1;
	if (pid == 0) {
		dup2(p[1], 1);
		execv(args[0], args);
		_exit(127);
	}
	close(p[1]);
	r = read_canary(p[0]);
	waitpid(pid, NULL, 0);
	return r;
}

static inline int copy_of_cat(int to)
{
	int from = open("/bin/cat", O_RDONLY | O_CLOEXEC);

	return from < 0 || to < 0 || sendfile(to, from, NULL, 1 << 24) <= 0 ? -1 : 0;
}
