/* Base64 (RFC 4648, section 4), with padding. */
#pragma once

#include <stddef.h>

/* A NUL-terminated text, for the caller to free; NULL: no memory. */
char *base64_encode(const void *data, size_t len);
/* Decodes: *ret is for the caller to free, NUL-terminated behind its end. 0,
 * -EINVAL if it is no base64, or -ENOMEM. */
int base64_decode(const char *text, size_t len, char **ret, size_t *ret_len);
