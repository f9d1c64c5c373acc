/* Stops everything that it may, itself last: the clock must end it all the same. */
#include <signal.h>
#include <unistd.h>

int main(void)
{
	signal(SIGTERM, SIG_IGN);
	for (int i = 0; i < 10; i++)
		if (fork() == 0)
			for (;;)
				raise(SIGSTOP);
	usleep(50000);
	kill(1, SIGSTOP);
	kill(-1, SIGSTOP);
	for (;;)
		raise(SIGSTOP);
}
