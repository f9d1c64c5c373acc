/* What the library and pale-box say to each other, over a SOCK_SEQPACKET socket pair of which
 * pale-box holds one end as descriptor 3.
 *
 * To pale-box: one packet WIRE_RUN with a memfd that holds the request (fields, see below), the
 * streams that there are, and the descriptors that secrets of the policy come by, in its order;
 * from then on struct supervise_command packets. Back: WIRE_ID with the id of the run, WIRE_EVENT
 * packets (a line of the log as the packet's text, or in a memfd if it is long), WIRE_DROPPED, and
 * one WIRE_END or WIRE_ERROR (of a session WIRE_READY when its kernel is ready; pale-box then goes
 * on without its caller), after which the socket is closed. Either side's end of it is the other's
 * sign that it is gone. Both run as the same user; still each checks what it takes. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define WIRE_FD	     3
#define WIRE_MAGIC   0x70616c65u
#define WIRE_VERSION 3u
#define WIRE_INLINE  32768u	  /* the longest text in a packet itself */
#define WIRE_MAX     (256u << 20) /* of a memfd's content */
#define WIRE_STREAMS 3
#define WIRE_SECRETS 16 /* of those that come by descriptor */
#define WIRE_MAX_FDS (1 + WIRE_STREAMS + WIRE_SECRETS)

enum wire_kind {
	WIRE_RUN = 1,
	WIRE_EVENT,
	WIRE_DROPPED,
	WIRE_END,
	WIRE_ERROR,
	WIRE_ID,
	WIRE_READY
};

/* Bits of wire_packet.flags in WIRE_RUN: which descriptors follow the memfd, and the options. */
enum wire_flag {
	WIRE_IN = 1,
	WIRE_OUT = 2,
	WIRE_ERR = 4,
	WIRE_KEEP = 8,
	WIRE_ORDERED = 16,
	WIRE_EVENTS = 32,
	WIRE_TTY = 64,
	WIRE_SESSION = 128,
	WIRE_POOL = 256, /* of sessions: value says how many */
};

struct wire_packet {
	uint32_t magic, version, kind, flags;
	uint64_t value; /* WIRE_DROPPED, WIRE_RUN with WIRE_POOL: how many */
	uint32_t len;	/* of the text that follows; 0 with a memfd */
	uint32_t has_memfd;
	struct pale_err err; /* WIRE_ERROR, and WIRE_END where Pale failed half-way */
};

/* Fields: 4 bytes of length and the bytes, one after the other; NULL is a length of all ones. */
int wire_put(struct buf *b, const char *data, size_t len);
int wire_puts(struct buf *b, const char *s);

struct wire_reader {
	char *data; /* of the memfd, NUL-terminated fields are made in place */
	size_t len, at;
	bool failed;
};
/* The next field, NUL-terminated, within r's memory; NULL for NULL, and for what is malformed (then
 * r->failed). ret_len may be NULL. */
const char *wire_get(struct wire_reader *r, size_t *ret_len);

/* The number in "fd:N", the source of a secret; -1 for another source. */
int wire_secret_fd(const char *value_from);

/* A sealed memfd with these bytes, or a negative errno. */
int wire_memfd(const void *data, size_t len);
/* Reads one: 0 or a negative errno. b->max bounds it. */
int wire_read_memfd(int fd, struct buf *b);
