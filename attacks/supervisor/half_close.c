/* Closes its input and its outputs, or the one that it is told, and goes on: half_close FD */
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc > 1)
		close((int)strtol(argv[1], NULL, 10));
	else
		close_range(0, 2, 0);
	for (int i = 0; i < 3; i++) {
		usleep(100000);
		(void)!write(STDOUT_FILENO, "out\n", 4);
		(void)!write(STDERR_FILENO, "err\n", 4);
	}
	return 5;
}
