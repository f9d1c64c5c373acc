/* What speculation controls cost, in nanoseconds an operation: one line each for a switch between
 * two processes (a byte to and fro through pipes), an indirect call to a place that changes, and a
 * load that follows a store nearby. The best of several rounds: others work on the machine, too. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 9

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int to[2], from[2];

static void switches(long n)
{
	char c = 0;

	while (n--)
		if (write(to[1], &c, 1) != 1 || read(from[0], &c, 1) != 1)
			exit(1);
}

static volatile unsigned sum;
static void add_one(void)
{
	sum += 1;
}
static void add_two(void)
{
	sum += 2;
}
static void add_three(void)
{
	sum += 3;
}
static void add_five(void)
{
	sum += 5;
}

static void branches(long n)
{
	static void (*volatile const places[])(void) = {add_one, add_two, add_three, add_five};
	unsigned random = 1;

	while (n--) {
		random = random * 1664525 + 1013904223;
		places[random >> 30]();
	}
}

static void stores(long n)
{
	static volatile uint64_t place[64];
	uint64_t at = 0;

	while (n--) {
		place[at & 63] = at + 1;
		at += place[(at + 7) & 63] & 1;
		at++;
	}
	sum += (unsigned)at;
}

int main(void)
{
	static const struct {
		const char *name;
		void (*run)(long n);
		long n;
	} what[] = {{"switch", switches, 3000},
		    {"branch", branches, 1000000},
		    {"store", stores, 2000000}};
	char c;

	if (pipe(to) < 0 || pipe(from) < 0)
		return 1;
	if (fork() == 0) {
		close(to[1]);
		while (read(to[0], &c, 1) == 1)
			if (write(from[1], &c, 1) != 1)
				break;
		_exit(0);
	}
	for (size_t i = 0; i < sizeof(what) / sizeof(*what); i++) {
		double best = 1e18;

		for (int r = 0; r < ROUNDS; r++) {
			uint64_t start = now_ns();
			double each;

			what[i].run(what[i].n);
			each = (double)(now_ns() - start) / (double)what[i].n;
			best = each < best ? each : best;
		}
		printf("%s %.2f\n", what[i].name, best);
	}
	return 0;
}
