/* Linked into a copy of the command: the Nth allocation fails, and, if so wanted, each one after
 * it. The linker puts these functions in the place of the C library's, also for the libraries that
 * are linked in (tests/faults/meson.build).
 *
 * PALE_NOMEM names a file of struct nomem, which all processes share: the test reads from it how
 * many there were. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static struct nomem {
	long at; /* 0: none */
	long forever;
	long count;
} * nomem;

__attribute__((constructor)) static void nomem_start(void)
{
	const char *path = getenv("PALE_NOMEM");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *p = fd < 0 ? MAP_FAILED
			 : mmap(NULL, sizeof(*nomem), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p != MAP_FAILED)
		nomem = p;
	if (fd >= 0)
		close(fd);
}

static int fails(void)
{
	long n;

	if (!nomem)
		return 0;
	n = __atomic_add_fetch(&nomem->count, 1, __ATOMIC_RELAXED);
	return nomem->at && (n == nomem->at || (nomem->forever && n > nomem->at));
}

#define WRAP(name, params, args)           \
	void *__real_##name params;        \
	void *__wrap_##name params;        \
	void *__wrap_##name params         \
	{                                  \
		if (fails()) {             \
			errno = ENOMEM;    \
			return NULL;       \
		}                          \
		return __real_##name args; \
	}

WRAP(malloc, (size_t n), (n))
WRAP(calloc, (size_t n, size_t m), (n, m))
WRAP(realloc, (void *p, size_t n), (p, n))
WRAP(reallocarray, (void *p, size_t n, size_t m), (p, n, m))
WRAP(strdup, (const char *s), (s))
WRAP(strndup, (const char *s, size_t n), (s, n))
