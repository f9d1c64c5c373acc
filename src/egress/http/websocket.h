/* What a client says over a WebSocket, for the search for placeholders only: nothing is changed. */
#pragma once

#include "egress/http/secrets.h"

struct websocket {
	uint8_t head[14]; /* of a frame: as much as has come */
	size_t have;
	uint64_t left; /* of the frame's payload */
	uint8_t mask[4];
	unsigned at; /* in mask */
	bool control;
	/* Of the search: control frames stand within messages, and the bytes as they are sent may
	 * say more to a server that does not unmask them. */
	uint32_t state, control_state, raw_state;
};

/* Is a placeholder in these bytes, or does one end in them? */
bool websocket_sent(struct websocket *w, const struct secrets *s, const void *data, size_t len);
