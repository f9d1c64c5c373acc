/* What is said at a supervisor's door: docs/control-protocol.md. Lines of JSON, one a request, one
 * a reply. Here they are read and written; door.c carries them. */
#pragma once

#include <jansson.h>

#include "base/buf.h"
#include "policy/network_change.h"

#define CONTROL_VERSION	    1
#define CONTROL_REQUEST_MAX (8u << 20) /* a line */
#define CONTROL_REPLY_MAX   (64u << 20)

/* Why something was not done: the words of these are part of the protocol, for programs. */
enum control_code {
	CONTROL_MALFORMED, /* no request at all; the connection is closed */
	CONTROL_VERSION_UNKNOWN,
	CONTROL_UNKNOWN_COMMAND,
	CONTROL_ARGUMENTS, /* they make no sense, or one is missing */
	CONTROL_POLICY,	   /* a rule is wrong */
	CONTROL_NOT_FOUND,
	CONTROL_CONFLICT, /* somebody else changed it meanwhile */
	CONTROL_STATE,	  /* not in what the box is now: it ends */
	CONTROL_BUSY,	  /* too many at the door */
	CONTROL_REFUSED,  /* not by this caller, or not while it runs */
	CONTROL_FAILED,	  /* Pale itself could not */
};
const char *control_code_name(enum control_code code);
/* The code that an error of ours is told by. */
enum control_code control_code_of(const struct pale_err *err);

struct control_request {
	json_t *whole;	     /* owns what follows */
	const json_t *id;    /* as it was given: a number or a text; or NULL */
	const char *command; /* at most 64 bytes */
	json_t *arguments;   /* an object, maybe without members */
};

/* Reads a line without its newline: hostile bytes. On failure *ret holds what can be told of it
 * (its id), and *ret_code says why. */
int control_parse(const char *line, size_t len, struct control_request *ret,
		  enum control_code *ret_code, struct pale_err *err) _must_check_;
void control_request_done(struct control_request *r);
#define _cleanup_request_ _cleanup_(control_request_done)

/* Refuses arguments other than these; known: NULL-terminated. */
int control_known(const json_t *arguments, const char *const *known,
		  struct pale_err *err) _must_check_;
/* The arguments of network.change; *ret_revision: 0 if none was given. On failure *ret is still to
 * be released. */
int control_network_change(json_t *arguments, struct network_change *ret, uint64_t *ret_revision,
			   enum control_code *ret_code, struct pale_err *err) _must_check_;

/* Append a reply with its newline; result is stolen. 0, or negative: it is too long, or no memory.
 */
int control_reply(struct buf *out, const json_t *id, json_t *result) _must_check_;
int control_error(struct buf *out, const json_t *id, enum control_code code,
		  const struct pale_err *err) _must_check_;
