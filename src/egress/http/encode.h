/* Forms in which a text travels in HTTP: base64 and percent-encoding. */
#pragma once

#include "base/buf.h"

/* Appends; url: with - and _ and without padding. */
int encode_base64(struct buf *b, const void *data, size_t len, bool url) _must_check_;
/* Appends what is encoded in either alphabet, padded or not; -EINVAL: it is neither. */
int decode_base64(struct buf *b, const char *s, size_t len) _must_check_;
/* Everything but letters, digits and -._~ as %XX. */
int encode_percent(struct buf *b, const char *s, size_t len) _must_check_;
int encode_hex_value(char c); /* 0 to 15; -1: it is none */
/* %XX as bytes; what is no such triple stays. plus: `+` is a blank. */
int decode_percent(struct buf *b, const char *s, size_t len, bool plus) _must_check_;
