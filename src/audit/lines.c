/* Reading a log line by line: see lines.h. The file may have been altered: only its length is
 * trusted, up to the maximum of a line. */
#include "lines.h"

#include <string.h>

int log_next(struct log_lines *l, const char **ret_line, size_t *ret_len)
{
	size_t scanned = 0;

	for (;;) {
		const char *from = l->b.len ? l->b.data + l->at : NULL;
		size_t have = l->b.len - l->at;
		const char *nl =
			have > scanned ? memchr(from + scanned, '\n', have - scanned) : NULL;

		if (nl) {
			*ret_line = from;
			*ret_len = (size_t)(nl - from);
			l->at += *ret_len + 1;
			return 1;
		}
		if (have > AUDIT_LINE_MAX)
			return -ENOSPC;
		scanned = have;
		if (l->at && have)
			memmove(l->b.data, l->b.data + l->at, have);
		l->b.len = have;
		l->at = 0;

		size_t want = l->b.max - l->b.len < 65536 ? l->b.max - l->b.len : 65536;
		char *to = buf_room(&l->b, want);

		if (!to)
			return -errno;
		ssize_t n = pread(l->fd, to, want, l->offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		l->b.len += (size_t)n;
		l->offset += n;
	}
}

size_t log_rest(const struct log_lines *l)
{
	return l->b.len - l->at;
}

void log_lines_done(struct log_lines *l)
{
	buf_done(&l->b);
}
