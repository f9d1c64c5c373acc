/* Threads write single bytes to standard output for ever, while one writes to standard error: a
 * supervisor that takes all of the one before it lets the other go on never gets to its clock. */
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

static void *flood(void *fd)
{
	for (;;)
		(void)!write(*(int *)fd, "x", 1);
	return NULL;
}

int main(void)
{
	static int out = STDOUT_FILENO, err = STDERR_FILENO;
	pthread_t thread;

	for (int i = 0; i < 4; i++)
		pthread_create(&thread, NULL, flood, &out);
	flood(&err);
	return 1;
}
