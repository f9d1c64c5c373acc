/* The ssh agent's protocol (draft-ietf-sshm-ssh-agent, and OpenSSH's PROTOCOL.agent), as far as a
 * box may speak it. What is read is hostile; nothing is allocated, and results point into the
 * input. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define AGENT_MESSAGE_MAX (256u << 10) /* as OpenSSH's: without the four bytes of the length */

enum agent_type {
	AGENT_FAILURE = 5,
	AGENT_SUCCESS = 6,
	AGENT_REQUEST_IDENTITIES = 11,
	AGENT_IDENTITIES_ANSWER = 12,
	AGENT_SIGN_REQUEST = 13,
	AGENT_SIGN_RESPONSE = 14,
	AGENT_EXTENSION = 27,
};

struct agent_bytes {
	const uint8_t *data;
	size_t len;
};

/* Takes a string (length and bytes), or an integer, off the front. false: there is none. */
bool agent_take(struct agent_bytes *from, struct agent_bytes *ret);
bool agent_take_u32(struct agent_bytes *from, uint32_t *ret);
bool agent_take_byte(struct agent_bytes *from, uint8_t *ret);
bool agent_is(struct agent_bytes b, const char *text);
bool agent_same(struct agent_bytes a, struct agent_bytes b);

/* The length of a message whose first four bytes these are; 0: longer than is allowed, or empty. */
uint32_t agent_length(const uint8_t head[static 4]);
/* What a request is called, for events: "sign", "add-identity"; "unknown". */
const char *agent_request_name(uint8_t type);

/* session-bind@openssh.com: the client says that this connection is for the session of which the
 * server with host_key signed the identifier. -EINVAL; -ENOTSUP: it is another extension. message:
 * without its length. */
struct agent_bind {
	struct agent_bytes host_key, session_id, signature;
	bool forwarding;
};
int agent_parse_bind(struct agent_bytes message, struct agent_bind *ret) _must_check_;

struct agent_sign {
	struct agent_bytes key, data;
	uint32_t flags;
};
int agent_parse_sign(struct agent_bytes message, struct agent_sign *ret) _must_check_;

/* What is to be signed: a login with the key (RFC 4252, 7). -EINVAL: it is anything else. */
struct agent_login {
	struct agent_bytes session_id, user;
	struct agent_bytes host_key; /* publickey-hostbound-v00@openssh.com; data NULL: not said */
};
int agent_parse_login(const struct agent_sign *sign, struct agent_login *ret) _must_check_;

/* An answer with identities (without its length), their comments left out, with its length.
 * -EINVAL: it is none; -ENOMEM. */
int agent_without_comments(struct agent_bytes answer, struct buf *ret) _must_check_;
