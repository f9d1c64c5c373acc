/* Children send the first process signals without end, so that it has no time to see the command
 * end. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	for (int i = 0; i < 8; i++)
		if (fork() == 0)
			for (;;)
				for (int s = SIGRTMIN; s < SIGRTMAX; s++)
					kill(1, s);
	usleep(300000);
	puts("ended");
	return 7;
}
