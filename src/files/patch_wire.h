/* What `pale diff` and its helper `pale-patch` say to each other: one request and one answer after
 * the other, over one stream socket. Native byte order: both are of the same build. */
#pragma once

#include <stdint.h>

#define PATCH_MAGIC    0x70617432u
#define PATCH_PATH_MAX 16384u
#define PATCH_SIDE_MAX ((uint64_t)256 << 20) /* of the content before or after */
#define PATCH_TEXT_MAX ((uint64_t)8 << 20)   /* beyond it a file is treated as binary */
#define PATCH_OUT_MAX  ((uint64_t)1 << 30)

enum patch_want { PATCH_WANT_TEXT = 1, PATCH_WANT_STAT = 2 };

/* Followed by the path, the old and the new content. A mode as git writes it (0100644, 0100755,
 * 0120000); 0: there is nothing on that side. */
struct patch_request {
	uint32_t magic, want;
	uint32_t old_mode, new_mode;
	uint64_t old_len, new_len;
	uint32_t path_len, reserved;
};

/* Followed by the text. */
struct patch_answer {
	uint32_t magic, binary;
	uint64_t added, removed; /* lines */
	uint64_t len;
};
