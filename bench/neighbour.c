/* A quiet program, for ./dev bench neighbour: each job is about a millisecond of work, a file that
 * is written, read and removed, and a byte that goes to another process and back; then a pause.
 * Reads a number of milliseconds from a line of standard input, does jobs for so long, and prints
 * what each took, in microseconds, in one line. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define JOBS_MAX 4096
#define PAUSE_US 2000

static int to[2], from[2];
static long turns; /* of about a millisecond, on this machine when it was quiet */

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void work(long n)
{
	volatile unsigned x = 1;

	while (n--)
		x = x * 1664525 + 1013904223;
}

static void job(void)
{
	static char block[16384];
	char name[] = "/tmp/bench-neighbour-XXXXXX", c = 0;
	int fd;

	work(turns);
	fd = mkstemp(name);
	if (fd < 0 || write(fd, block, sizeof(block)) != sizeof(block) ||
	    pread(fd, block, sizeof(block), 0) != sizeof(block) || unlink(name) < 0)
		exit(1);
	close(fd);
	if (write(to[1], &c, 1) != 1 || read(from[0], &c, 1) != 1)
		exit(1);
}

int main(int argc, char **argv)
{
	static unsigned took[JOBS_MAX];
	char line[32], c;

	/* As many as outside, where the machine was quiet when they were counted. */
	turns = argc > 1 ? atol(argv[1]) : 0;
	if (!turns) {
		uint64_t best = UINT64_MAX;

		for (int i = 0; i < 20; i++) {
			uint64_t begun = now_us();

			work(1000000);
			best = now_us() - begun < best ? now_us() - begun : best;
		}
		printf("%llu\n", 1000000000ULL / (unsigned long long)(best ? best : 1));
		return 0;
	}
	if (pipe(to) < 0 || pipe(from) < 0)
		return 1;
	if (fork() == 0) {
		close(to[1]);
		while (read(to[0], &c, 1) == 1)
			if (write(from[1], &c, 1) != 1)
				break;
		_exit(0);
	}
	while (fgets(line, sizeof(line), stdin)) {
		uint64_t until = now_us() + (uint64_t)atol(line) * 1000;
		size_t n = 0;

		while (now_us() < until && n < JOBS_MAX) {
			uint64_t begun = now_us();

			job();
			took[n++] = (unsigned)(now_us() - begun);
			usleep(PAUSE_US);
		}
		for (size_t i = 0; i < n; i++)
			printf("%u ", took[i]);
		printf("\n");
		fflush(stdout);
	}
	return 0;
}
