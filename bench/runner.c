/* Starts programs and measures how long each takes, fairly: in interleaved rounds, so that a
 * machine that speeds up or slows down meanwhile does so for all of them.
 *
 *   runner ROUNDS ::: NAME[@ROUNDS] COMMAND [ARG...] ::: NAME COMMAND ...
 *
 * Prints one line of JSON a program: runs, failures, p50 and p95 of the wall time from spawn to
 * reaped, and the mean CPU time of it and its descendants. Runs as the caller; trusted input only.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_PROGRAMS 32

extern char **environ;

struct program {
	const char *name;
	char **argv;
	unsigned rounds;
	unsigned done, failed;
	int first_failure;
	uint64_t *wall_ns;
	uint64_t cpu_us;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void run_once(struct program *p, const posix_spawn_file_actions_t *quiet)
{
	struct rusage usage;
	int status;
	pid_t pid;
	uint64_t start = now_ns(), end;
	int r = posix_spawnp(&pid, p->argv[0], quiet, NULL, p->argv, environ);

	if (r != 0) {
		p->failed++;
		p->first_failure = 127;
		return;
	}
	while (wait4(pid, &status, 0, &usage) < 0)
		if (errno != EINTR)
			abort();
	end = now_ns();
	if (status != 0) {
		p->first_failure = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		p->failed++;
		return;
	}
	p->wall_ns[p->done++] = end - start;
	p->cpu_us += (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000u +
		     (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static unsigned parse_rounds(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*end || n == 0 || n > 100000) {
		fprintf(stderr, "runner: a number of rounds, not \"%s\"\n", text);
		exit(2);
	}
	return (unsigned)n;
}

static size_t parse(int argc, char **argv, struct program *programs)
{
	unsigned rounds = parse_rounds(argc > 1 ? argv[1] : "");
	size_t n = 0;

	for (int i = 2; i < argc; i++) {
		struct program *p = &programs[n];
		char *at;

		if (strcmp(argv[i], ":::") != 0)
			continue;
		argv[i] = NULL; /* ends the arguments of the one before */
		if (i + 2 >= argc || n == MAX_PROGRAMS) {
			fprintf(stderr, "runner: ::: NAME COMMAND, at most %d times\n",
				MAX_PROGRAMS);
			exit(2);
		}
		p->name = argv[i + 1];
		p->argv = argv + i + 2;
		p->rounds = rounds;
		at = strchr(argv[i + 1], '@');
		if (at) {
			*at = '\0';
			p->rounds = parse_rounds(at + 1);
		}
		p->wall_ns = calloc(p->rounds, sizeof(*p->wall_ns));
		if (!p->wall_ns)
			abort();
		n++;
	}
	return n;
}

int main(int argc, char **argv)
{
	static struct program programs[MAX_PROGRAMS];
	size_t n = parse(argc, argv, programs);
	posix_spawn_file_actions_t quiet;
	unsigned most = 0;

	posix_spawn_file_actions_init(&quiet);
	for (int fd = 0; fd < 3; fd++)
		posix_spawn_file_actions_addopen(&quiet, fd, "/dev/null", O_RDWR, 0);
	for (size_t i = 0; i < n; i++)
		if (programs[i].rounds > most)
			most = programs[i].rounds;
	for (unsigned round = 0; round < most; round++)
		for (size_t k = 0; k < n; k++) {
			/* Another one first in each round, so that none always follows the same. */
			struct program *p = &programs[(k + round) % n];

			/* Fewer rounds are spread over the whole time. */
			if ((uint64_t)(round + 1) * p->rounds / most >
			    (uint64_t)round * p->rounds / most)
				run_once(p, &quiet);
		}
	for (size_t i = 0; i < n; i++) {
		struct program *p = &programs[i];
		unsigned d = p->done;

		qsort(p->wall_ns, d, sizeof(*p->wall_ns), compare);
		printf("{\"name\": \"%s\", \"runs\": %u, \"failed\": %u, \"status\": %d, "
		       "\"p50_us\": %.1f, \"p95_us\": %.1f, \"cpu_us\": %.1f}\n",
		       p->name, d, p->failed, p->first_failure,
		       d ? (double)p->wall_ns[d / 2] / 1000 : 0,
		       d ? (double)p->wall_ns[(uint64_t)d * 95 / 100] / 1000 : 0,
		       d ? (double)p->cpu_us / d : 0);
		free(p->wall_ns);
	}
	posix_spawn_file_actions_destroy(&quiet);
	return 0;
}
