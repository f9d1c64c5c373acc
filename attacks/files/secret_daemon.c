/* By a grandchild in a session of its own. */
#include "../attack.h"

#include <fcntl.h>
#include <sys/wait.h>

ATTACK(FILES, "root", .gain = "any file of the caller's, by a process that a wrapper has lost",
       .source = "re-execution that drops the wrapper", .works = OUTSIDE)
{
	int p[2], status = 1;
	pid_t pid;

	if (pipe(p) < 0 || (pid = fork()) < 0)
		return -1;
	if (pid == 0) {
		setsid();
		if (fork() > 0)
			_exit(0);
		status = read_canary(open(target("secret"), O_RDONLY | O_CLOEXEC)) == 0 ? 0 : errno;
		_exit(write(p[1], &status, sizeof(status)) < 0);
	}
	close(p[1]);
	waitpid(pid, NULL, 0);
	if (read(p[0], &status, sizeof(status)) != sizeof(status))
		return denied(EPIPE);
	return status == 0 ? 0 : denied(status);
}
