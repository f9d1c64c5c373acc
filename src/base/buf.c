/* Growing buffers with a maximum: see buf.h. */
#include "buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>

void buf_done(struct buf *b)
{
	free(b->data);
	*b = (struct buf){.max = b->max};
}

char *buf_room(struct buf *b, size_t len)
{
	size_t want, cap;
	char *data;

	if (__builtin_add_overflow(b->len, len, &want) || want > b->max) {
		b->failed = true;
		errno = ENOSPC;
		return NULL;
	}
	if (want + 1 > b->cap) {
		cap = b->cap ? b->cap : 256;
		while (cap < want + 1)
			cap = cap > SIZE_MAX / 2 ? want + 1 : cap * 2;
		data = realloc(b->data, cap);
		if (!data) {
			b->failed = true;
			errno = ENOMEM;
			return NULL;
		}
		b->data = data;
		b->cap = cap;
	}
	return b->data + b->len;
}

int buf_add(struct buf *b, const void *data, size_t len)
{
	char *to = buf_room(b, len);

	if (!to)
		return -errno;
	if (len)
		memcpy(to, data, len);
	b->len += len;
	b->data[b->len] = '\0';
	return 0;
}

int buf_adds(struct buf *b, const char *s)
{
	return buf_add(b, s, strlen(s));
}

int buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list ap, again;
	char *to;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	to = n < 0 ? NULL : buf_room(b, (size_t)n);
	if (to) {
		vsnprintf(to, (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
	}
	va_end(again);
	return to ? 0 : -errno;
}

int buf_read_fd(struct buf *b, int fd)
{
	for (;;) {
		size_t left = b->max - b->len;
		size_t want = left < 65536 ? left : 65536;
		char probe;
		ssize_t n;
		char *to;

		if (want == 0) {
			n = read(fd, &probe, 1);
			if (n < 0 && errno == EINTR)
				continue;
			return n == 0 ? 0 : n < 0 ? -errno : -ENOSPC;
		}
		to = buf_room(b, want);
		if (!to)
			return -errno;
		n = read(fd, to, want);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		b->len += (size_t)n;
		b->data[b->len] = '\0';
		if (n == 0)
			return 0;
	}
}
