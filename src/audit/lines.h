/* Reading a log line by line: bounded, and safe beside a writer that is appending. */
#pragma once

#include <stdint.h>

#include "audit/chain.h"

struct log_lines {
	int fd; /* borrowed; read with pread */
	struct buf b;
	size_t at;    /* consumed part of b */
	off_t offset; /* of the next read */
};

#define LOG_LINES(log_fd) \
	((struct log_lines){.fd = (log_fd), .b = BUF_INIT(AUDIT_LINE_MAX + 65536)})

/* 1 and a line (without its newline; valid until the next call), 0 at the end of the complete lines
 * (call again when the file has grown), or a negative errno; -ENOSPC: a line beyond AUDIT_LINE_MAX.
 */
int log_next(struct log_lines *l, const char **ret_line, size_t *ret_len) _must_check_;

/* After 0: how many bytes without a newline follow the last complete line. */
size_t log_rest(const struct log_lines *l);

void log_lines_done(struct log_lines *l);
#define _cleanup_log_lines_ _cleanup_(log_lines_done)
