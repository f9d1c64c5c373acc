/* Scope-bound release of descriptors, memory and streams.
 *
 * Declare at first use with one of these attributes and an initial value, and hand a resource over
 * with take_fd() or take_ptr(), so that every return path releases exactly what it still owns. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <errno.h>

#define _cleanup_(f)   __attribute__((cleanup(f)))
#define _printf_(a, b) __attribute__((format(printf, a, b)))
#define _must_check_   __attribute__((warn_unused_result))
#define ARRAY_SIZE(a)  (sizeof(a) / sizeof((a)[0]))

/* Closes *fd if it is open and marks it closed; keeps errno, so that it is safe in error paths. */
static inline void close_fd(int *fd)
{
	if (*fd >= 0) {
		int saved = errno;

		close(*fd);
		errno = saved;
	}
	*fd = -1;
}

static inline void free_ptr(void *p)
{
	free(*(void **)p);
}

static inline void close_file(FILE **f)
{
	if (*f)
		fclose(*f);
}

#define _cleanup_close_ _cleanup_(close_fd)
#define _cleanup_free_	_cleanup_(free_ptr)
#define _cleanup_file_	_cleanup_(close_file)

/* Hands the descriptor over to the caller of the enclosing function. */
static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

#define take_ptr(p)                     \
	({                              \
		__typeof__(p) t_ = (p); \
		(p) = NULL;             \
		t_;                     \
	})
