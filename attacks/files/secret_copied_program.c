/* By a copy of a program under another name. */
#include "../attack.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>

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

static int copy_of_cat(int to)
{
	int from = open("/bin/cat", O_RDONLY | O_CLOEXEC);

	return from < 0 || to < 0 || sendfile(to, from, NULL, 1 << 24) <= 0 ? -1 : 0;
}

ATTACK(FILES, "root", .gain = "a program that is denied, by another name",
       .source = "rules on the names of commands", .works = OUTSIDE)
{
	char path[] = "/tmp/attack-cat-XXXXXX";
	char *args[] = {path, (char *)(uintptr_t)target("secret"), NULL};
	int fd = mkstemp(path);
	long r;

	if (copy_of_cat(fd) < 0 || fchmod(fd, 0700) < 0)
		return NOT_HERE;
	close(fd);
	r = run(args);
	unlink(path);
	return r;
}
