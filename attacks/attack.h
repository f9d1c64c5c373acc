/* What every attack has in common. An attack is one small file that tries one thing; it says what
 * it would gain, where it is from, and which promise of a plan it is aimed at. All of them together
 * are the program pale-attacks, which `pale verify` shows to its boxes; a few are programs of their
 * own as well, for tests. Each prints one line and ends:
 *
 *   denied ERRNO   status 0    it failed
 *   SUCCEEDED      status 1    it worked
 *   not here       status 77   this machine does not have the thing at all
 *
 * Outside a box (what only root can do: as root) each works wherever the kernel has the thing, so
 * that "denied" means something. None leaves anything changed, also where it works. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOT_HERE (-77)

enum attack_axis { FILES, NETWORK, KERNEL, RESOURCES };

/* Where the attack is seen to work: tests/verify/test_attacks.py. */
enum attack_works {
	OUTSIDE,      /* without a box, for anybody */
	AS_ROOT,      /* without a box, for root */
	SOME_KERNELS, /* without a box, for root, where the machine has what `needs` says */
	LIMIT,	      /* without a box, past a limit that the test names */
};

/* More about one. */
#define ALONE	 1u  /* wants a box of its own */
#define NESTING	 2u  /* what kernel.profile `nested` permits */
#define WRITES	 4u  /* audit.files: writes reports it */
#define NETWORKS 8u  /* needs a policy with network rules */
#define LONELY	 16u /* needs one without */
#define QUIET	 32u /* its event is not told by the profile `strict`, which has less to report */

struct attack {
	const char *file; /* NAME.c */
	enum attack_axis axis;
	const char *promise; /* the key of the promise that it breaks, of its axis */
	const char *gain;    /* what it would gain */
	const char *source; /* where it is from: a CVE, a manual page, a tool that was left by it */
	const char *event;  /* by which the audit log tells it; NULL: the promise says none */
	const char *with;   /* "key=value" of that event, the value to the end of the text */
	const char *needs;  /* of SOME_KERNELS */
	const char *broken; /* the host sees whether it worked, and says this word (host.c) */
	const char *limit;  /* the limit that it exceeds: "memory" */
	const char *set;    /* "key=value key=value": of the policy in its box */
	enum attack_works works;
	unsigned flags;
	long (*run)(int argc, char **argv);
};

/* Every attack registers itself: the linker makes a list of those in a program. */
#define ATTACK(axis_, promise_, ...)                                                              \
	static long attack_run(int argc, char **argv);                                            \
	static const struct attack attack_self = {.file = __FILE_NAME__,                          \
						  .axis = axis_,                                  \
						  .promise = promise_,                            \
						  __VA_ARGS__,                                    \
						  .run = attack_run};                             \
	__attribute__((section("attacks"), used)) static const struct attack *const attack_link = \
		&attack_self;                                                                     \
	static long attack_run(int argc __attribute__((unused)),                                  \
			       char **argv __attribute__((unused)))

/* The kernel took the call up and found only its (deliberately wrong) arguments at fault. */
static inline long reached(long result, int error)
{
	return result < 0 && errno == error ? 0 : result;
}

/* Failed for this reason. */
static inline long denied(int error)
{
	errno = error;
	return -1;
}

/* What the host's side of the attacks (host.c) has put up, or the box was given: a path, a name, a
 * number, as text. "" if there is none. */
static inline const char *target(const char *what)
{
	char name[64];
	const char *value;

	snprintf(name, sizeof(name), "ATTACK_%s", what);
	value = getenv(name);
	return value ? value : "";
}

static inline long target_number(const char *what)
{
	return strtol(target(what), NULL, 10);
}

/* Of what the attack cannot be tried without: on a host that lacks it, it is not here. */
static inline const char *needed(const char *what)
{
	const char *value = target(what);

	if (*value)
		return value;
	puts("not here");
	exit(77);
}

static inline long needed_number(const char *what)
{
	return strtol(needed(what), NULL, 10);
}

/* What begins everything that host.c hides from a box. */
#define CANARY "pale-canary-"

/* Text of a descriptor that should not be readable: 0 if the canary is in it. */
static inline long has_canary(int fd)
{
	char text[65536];
	size_t n = 0;
	ssize_t r = 0;

	while (n < sizeof(text) - 1 && (r = read(fd, text + n, sizeof(text) - 1 - n)) > 0)
		n += (size_t)r;
	if (n == 0)
		return r < 0 ? -1 : denied(ENODATA);
	text[n] = '\0';
	for (size_t i = 0; i < n; i++) /* NULs: an environment, a command line */
		if (!text[i])
			text[i] = '\n';
	return strstr(text, CANARY) ? 0 : denied(ENODATA);
}

/* A process that is not to outlive its box calls itself so; its argument is the target "abstract",
 * which tells one host's side from another. */
#define SURVIVOR "pale-attack-survivor"

/* The file that should not be readable. */
static inline long read_canary(int fd)
{
	long r = fd < 0 ? -1 : has_canary(fd);
	int error = errno;

	if (fd >= 0)
		close(fd);
	errno = error;
	return r;
}
