/* HTTP/1.1 as it is on the wire, read strictly: what two parsers could read in two ways is refused.
 */
#pragma once

#include "egress/http/head.h"

/* Finds the end of a head as its bytes come. */
struct h1_scan {
	size_t seen; /* bytes looked at */
	bool line;   /* something stands in the line that is being looked at */
	bool cr;     /* its last byte is CR */
	bool begun;  /* a line that is not empty has been seen */
};
/* data: all bytes of the head so far, the same as before and maybe more. The length of the head
 * with its empty line; 0: more is needed; -EBADMSG: a LF without CR, a CR without LF, or a NUL;
 * -E2BIG. Empty lines before a request line are part of the head. */
ssize_t h1_scan(struct h1_scan *s, const char *data, size_t len);

/* Parse a whole head (h1_scan()) into h, which is empty. 0, or the status that the client is to be
 * answered with (400, 431, 501, 505; of an answer that can't be read: 502) and why in *ret_why.
 *
 * Refused: a LF alone, obsolete line folding, blanks around the field's name, more than one
 * Content-Length (also if alike), Content-Length together with Transfer-Encoding, any coding but
 * `chunked`, Transfer-Encoding in HTTP/1.0, control characters, more than one Host or none (1.1).
 */
int h1_parse_request(struct head *h, const char *data, size_t len,
		     const char **ret_why) _must_check_;
int h1_parse_answer(struct head *h, const char *data, size_t len,
		    const char **ret_why) _must_check_;
/* Fields alone, as in trailers: each line with its CRLF. */
int h1_parse_fields(struct head *h, const char *data, size_t len,
		    const char **ret_why) _must_check_;

enum h1_body { H1_NONE, H1_LENGTH, H1_CHUNKED, H1_UNTIL_CLOSE };
struct h1_framing {
	enum h1_body body;
	uint64_t length; /* H1_LENGTH */
	bool keep_alive;
};
/* Of what was parsed above, so it can't fail. */
struct h1_framing h1_request_framing(const struct head *h);
struct h1_framing h1_answer_framing(const struct head *h, bool to_head_request);

#define H1_TRAILER_MAX	 (8u << 10)
#define H1_CHUNK_EXT_MAX 256

/* A chunked body, read as its bytes come. */
struct h1_chunks {
	int state;
	uint64_t left;
	size_t ext; /* bytes after the size in this line */
	unsigned digits;
	bool request; /* chunk extensions are refused then: no program sends them, attacks do */
	struct h1_scan scan;
	struct buf trailers; /* at the end: the trailer lines, without the empty one */
};
void h1_chunks_init(struct h1_chunks *c, bool request);
void h1_chunks_done(struct h1_chunks *c);
/* Uses up some of data (at least a byte, if len is not 0): *ret_used, of which *ret_len bytes at
 * *ret_body are body. 0: go on, 1: that was the end, trailers included; -EBADMSG, -E2BIG, -ENOMEM.
 */
int h1_chunks_read(struct h1_chunks *c, const char *data, size_t len, size_t *ret_used,
		   const char **ret_body, size_t *ret_len) _must_check_;

/* Is it a token (RFC 9110, 5.6.2)? */
bool h1_is_token(const char *s, size_t len);
