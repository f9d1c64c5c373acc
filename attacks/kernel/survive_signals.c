/* A process that ignores every signal. */
#include "../attack.h"

#include <signal.h>
#include <sys/wait.h>

static long survive(void (*hide)(void))
{
	char *argv[] = {(char *)(uintptr_t)SURVIVOR, (char *)(uintptr_t)target("abstract"), NULL};
	pid_t pid = fork();

	if (pid < 0)
		return -1;
	if (pid > 0) {
		waitpid(pid, NULL, 0);
		/* Until it calls itself so. */
		usleep(200000);
		return 0;
	}
	hide();
	if (fork() > 0)
		_exit(0);
	for (int fd = 0; fd < 1024; fd++)
		close(fd);
	execv("/proc/self/exe", argv);
	_exit(127);
}

static void hide(void)
{
	setsid();
	for (int n = 1; n < 65; n++)
		signal(n, SIG_IGN);
}

ATTACK(KERNEL, "processes", .gain = "a program that runs on after the box", .source = "signal(7)",
       .broken = "survived", .works = OUTSIDE, .flags = ALONE)
{
	return survive(hide);
}
