/* Contents: copying with holes kept, comparing, hashing. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

#define COPY_HASH_SIZE 65

/* Copies size bytes from from_fd at from_at to to_fd at to_at; holes stay holes (to_fd has nothing
 * there yet). With ret_hash the SHA-256 of the contents in hex is made, unless there are holes in
 * it (then it is
 * ""): a hole of a petabyte costs nothing to make and must cost nothing to read. At most max_bytes
 * of data are copied. The number of bytes of data, or a negative errno: -EFBIG for more than
 * max_bytes, -ENODATA if the file is shorter than size. */
int64_t copy_range(int from_fd, int64_t from_at, int to_fd, int64_t to_at, int64_t size,
		   uint64_t max_bytes, char *ret_hash) _must_check_;

/* Whether size bytes are the same on both sides: 1, 0, or a negative errno. */
int copy_same(int a_fd, int64_t a_at, int b_fd, int64_t b_at, int64_t size) _must_check_;
