/* Running on when the box has ended. */
#pragma once

#include "../attack.h"

#include <sys/wait.h>

/* Leaves a process behind that did this first with nothing open and calls itself SURVIVOR. */
static inline long survive(void (*hide)(void))
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
