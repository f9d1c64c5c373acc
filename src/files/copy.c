/* Contents of files: see copy.h. Runs in the confined child (sources hostile) and in `pale apply`.
 *
 * Data is found with SEEK_DATA, so that time and disk follow what was really written, not the size
 * that a file claims. */
#include "files/copy.h"

#include <string.h>
#include <sha256.h>
#include <sys/types.h>

#include "base/fd.h"

#define CHUNK 131072

/* The next piece of data in [at, end): its start and end. 1, 0 if only a hole is left, or an errno.
 * File systems without SEEK_DATA report the whole file as data. */
static int next_data(int fd, int64_t at, int64_t end, int64_t *ret_from, int64_t *ret_to)
{
	int64_t from = lseek(fd, at, SEEK_DATA), to;

	if (from < 0 && errno == ENXIO)
		return 0;
	if (from < 0 && errno != EINVAL)
		return -errno;
	if (from < 0) {
		*ret_from = at;
		*ret_to = end;
		return 1;
	}
	if (from >= end)
		return 0;
	to = lseek(fd, from, SEEK_HOLE);
	if (to < 0)
		return -errno;
	*ret_from = from;
	*ret_to = to < end ? to : end;
	return 1;
}

static int write_at(int fd, const void *data, size_t len, int64_t at)
{
	const char *p = data;

	while (len) {
		ssize_t n = pwrite(fd, p, len, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

static void hash_text(SHA2_CTX *hash, char *ret)
{
	static const char hex[] = "0123456789abcdef";
	uint8_t digest[SHA256_DIGEST_LENGTH];

	SHA256Final(digest, hash);
	for (size_t i = 0; i < sizeof(digest); i++) {
		ret[2 * i] = hex[digest[i] >> 4];
		ret[2 * i + 1] = hex[digest[i] & 15];
	}
	ret[2 * sizeof(digest)] = '\0';
}

int64_t copy_range(int from_fd, int64_t from_at, int to_fd, int64_t to_at, int64_t size,
		   uint64_t max_bytes, char *ret_hash)
{
	_cleanup_free_ char *chunk = NULL;
	int64_t at = from_at, end = from_at + size, copied = 0, from = 0, to = 0;
	SHA2_CTX hash;
	int r;

	if (ret_hash)
		SHA256Init(&hash);
	if (size > 0) {
		chunk = malloc(CHUNK < size ? CHUNK : (size_t)size);
		if (!chunk)
			return -ENOMEM;
	}
	while (at < end) {
		r = next_data(from_fd, at, end, &from, &to);
		if (r < 0)
			return r;
		if (r == 0)
			from = to = end;
		if (from > at && ret_hash) {
			*ret_hash = '\0';
			ret_hash = NULL;
		}
		for (at = from; at < to;) {
			size_t want = to - at < CHUNK ? (size_t)(to - at) : CHUNK;
			ssize_t n = fd_pread_full(from_fd, chunk, want, at);

			if (n < 0)
				return n;
			if ((size_t)n < want)
				return -ENODATA;
			copied += n;
			if ((uint64_t)copied > max_bytes)
				return -EFBIG;
			if (ret_hash)
				SHA256Update(&hash, (const uint8_t *)chunk, (size_t)n);
			r = write_at(to_fd, chunk, (size_t)n, to_at + (at - from_at));
			if (r < 0)
				return r;
			at += n;
		}
	}
	if (ret_hash)
		hash_text(&hash, ret_hash);
	return copied;
}

static int same(int a_fd, int64_t a_at, int b_fd, int64_t b_at, int64_t size, char *a, char *b)
{
	for (int64_t done = 0; done < size;) {
		size_t want = size - done < CHUNK ? (size_t)(size - done) : CHUNK;
		ssize_t n = fd_pread_full(a_fd, a, want, a_at + done), m;

		if (n < 0)
			return (int)n;
		m = fd_pread_full(b_fd, b, want, b_at + done);
		if (m < 0)
			return (int)m;
		if (n != m || memcmp(a, b, (size_t)n) != 0)
			return 0;
		if ((size_t)n < want)
			return -ENODATA;
		done += n;
	}
	return 1;
}

int copy_same(int a_fd, int64_t a_at, int b_fd, int64_t b_at, int64_t size)
{
	_cleanup_free_ char *a = malloc(CHUNK), *b = malloc(CHUNK);
	int64_t done = 0;
	int r = 1;

	if (!a || !b)
		return -ENOMEM;
	/* Where both have a hole there is nothing to read. */
	while (r == 1 && done < size) {
		int64_t a_from = size, a_to = size, b_from = size, b_to = size, from, to;
		int ra = next_data(a_fd, a_at + done, a_at + size, &a_from, &a_to);
		int rb = next_data(b_fd, b_at + done, b_at + size, &b_from, &b_to);

		if (ra < 0 || rb < 0)
			return ra < 0 ? ra : rb;
		if (!ra && !rb)
			break;
		from = ra && rb ? (a_from - a_at < b_from - b_at ? a_from - a_at : b_from - b_at)
		       : ra	? a_from - a_at
				: b_from - b_at;
		to = ra && (!rb || a_from - a_at <= b_from - b_at) ? a_to - a_at : b_to - b_at;
		r = same(a_fd, a_at + from, b_fd, b_at + from, to - from, a, b);
		done = to;
	}
	return r;
}
