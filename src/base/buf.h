/* A growing byte buffer with a maximum that is fixed when it is made: nothing a peer sends can make
 * us allocate without bound. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "cleanup.h"

struct buf {
	char *data; /* always NUL-terminated once anything was added */
	size_t len;
	size_t cap;
	size_t max;
	bool failed; /* an addition was refused: over max, or out of memory */
};

#define BUF_INIT(max_bytes) ((struct buf){.max = (max_bytes)})

void buf_done(struct buf *b);
#define _cleanup_buf_ _cleanup_(buf_done)

/* Each returns 0, or -ENOSPC (over the maximum) or -ENOMEM; the buffer then holds what it held and
 * `failed` is set, so that a chain of additions can be checked once at its end. */
int buf_add(struct buf *b, const void *data, size_t len);
int buf_adds(struct buf *b, const char *s);
int buf_addf(struct buf *b, const char *fmt, ...) _printf_(2, 3);

/* Makes room for len more bytes and returns where they go, or NULL; commit with b->len += n. */
char *buf_room(struct buf *b, size_t len);

/* Reads fd to its end. 0, or a negative errno; -ENOSPC if there was more than fits. */
int buf_read_fd(struct buf *b, int fd);
