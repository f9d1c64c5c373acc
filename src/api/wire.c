/* See wire.h. In the library's caller and in pale-box. */
#include "wire.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fd.h"
#include "base/num.h"
#include "base/str.h"

int wire_put(struct buf *b, const char *data, size_t len)
{
	uint32_t n = data ? (uint32_t)len : UINT32_MAX;

	if (data && len >= WIRE_MAX) {
		b->failed = true;
		return -ENOSPC;
	}
	buf_add(b, &n, sizeof(n));
	/* A NUL after each, so that the reader has strings without copying. */
	return data ? (buf_add(b, data, len), buf_add(b, "", 1)) : 0;
}

int wire_secret_fd(const char *value_from)
{
	uint64_t n;

	return str_starts(value_from, "fd:") && num_parse_u64(value_from + 3, INT32_MAX, &n) == 0
		       ? (int)n
		       : -1;
}

int wire_puts(struct buf *b, const char *s)
{
	return wire_put(b, s, s ? strlen(s) : 0);
}

const char *wire_get(struct wire_reader *r, size_t *ret_len)
{
	const char *field;
	uint32_t n;

	if (ret_len)
		*ret_len = 0;
	if (r->failed || r->len - r->at < sizeof(n)) {
		r->failed = true;
		return NULL;
	}
	memcpy(&n, r->data + r->at, sizeof(n));
	r->at += sizeof(n);
	if (n == UINT32_MAX)
		return NULL;
	if (n >= r->len - r->at || r->data[r->at + n] != '\0') {
		r->failed = true;
		return NULL;
	}
	field = r->data + r->at;
	r->at += n + 1U;
	if (ret_len)
		*ret_len = n;
	return field;
}

int wire_memfd(const void *data, size_t len)
{
	_cleanup_close_ int fd = memfd_create("pale", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r = fd < 0 ? -errno : fd_write_all(fd, data, len);

	if (r == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		r = -errno;
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	return r < 0 ? r : take_fd(&fd);
}

int wire_read_memfd(int fd, struct buf *b)
{
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	return buf_read_fd(b, fd);
}
