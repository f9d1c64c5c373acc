/* What every attack has in common. An attack is one small static program that tries one thing,
 * prints one line and ends:
 *
 *   denied ERRNO   status 0    it failed
 *   SUCCEEDED      status 1    it worked
 *   not here       status 77   this machine does not have the thing at all
 *
 * Outside a box, as root, it works wherever the kernel allows it: so that the tests that say
 * "denied" can fail. None leaves anything changed, also where it works. */
#pragma once

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOT_HERE (-77)

/* The kernel took the call up and found only its (deliberately wrong) arguments at fault. */
static inline long reached(long result, int error)
{
	return result < 0 && errno == error ? 0 : result;
}

/* Its result: 0 or more: it worked; -1: errno says why not; NOT_HERE. */
static long attack(int argc, char **argv);

int main(int argc, char **argv)
{
	long r = attack(argc, argv);

	if (r == NOT_HERE) {
		puts("not here");
		return 77;
	}
	if (r < 0) {
		const char *name = strerrorname_np(errno);

		printf("denied %s\n", name ? name : "?");
		return 0;
	}
	puts("SUCCEEDED");
	return 1;
}

#define ATTACK \
	static long attack(int argc __attribute__((unused)), char **argv __attribute__((unused)))

/* The name to look for, where the test puts one up outside. */
#define NAME(fallback) (argc > 1 ? argv[1] : (fallback))
