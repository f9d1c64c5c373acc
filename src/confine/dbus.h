/* Just enough of D-Bus to ask systemd for a unit: a few method calls over a Unix socket, and the
 * signal that says the unit is there. libsystemd has no static library, and starting busctl costs
 * five times as much as the call itself.
 *
 * The peer is a bus daemon or systemd; what it sends is parsed with bounds all the same. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

#define DBUS_MESSAGE_MAX (256u << 10)

/* Connects and authenticates as uid. A descriptor or a negative errno; -EACCES: refused. */
int dbus_connect(const char *path, uid_t uid, uint64_t deadline_us);

/* Appending values to a body; each aligns itself. */
void dbus_u32(struct buf *b, uint32_t v);
void dbus_u64(struct buf *b, uint64_t v);
void dbus_string(struct buf *b, const char *s);
void dbus_signature(struct buf *b, const char *s);
void dbus_align(struct buf *b, size_t to);
/* Begins an array whose elements align to `to`; end with the value that this returned. */
size_t dbus_array(struct buf *b, size_t to);
void dbus_array_end(struct buf *b, size_t mark, size_t to);

struct dbus_call {
	const char *destination; /* NULL on a connection without a bus */
	const char *path, *interface, *member;
	const char *signature; /* of the body, or NULL */
	const struct buf *body;
};

/* Appends one method call to out, which must start at a multiple of 8. */
void dbus_marshal(struct buf *out, uint32_t serial, const struct dbus_call *call);

enum dbus_type { DBUS_CALL = 1, DBUS_RETURN = 2, DBUS_ERROR = 3, DBUS_SIGNAL = 4 };

struct dbus_message {
	enum dbus_type type;
	uint32_t reply_serial;
	const char *member;	/* or NULL; pointers into the input */
	const char *error_name; /* or NULL */
	const unsigned char *body;
	size_t body_len;
	size_t pos; /* of the readers below, in body */
};

/* Parses one message at the start of data. Its length, 0 if it is not yet whole, -EBADMSG. */
ssize_t dbus_parse(const void *data, size_t len, struct dbus_message *ret);
/* The next value of the body; false (and 0, NULL) if there is none. The string lies in the input.
 */
bool dbus_read_u32(struct dbus_message *m, uint32_t *ret);
bool dbus_read_string(struct dbus_message *m, const char **ret);
