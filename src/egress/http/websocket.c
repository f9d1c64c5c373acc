/* What a client says over a WebSocket: see websocket.h.
 *
 * Process: the broker, confined. Hostile: all of it. Frames from a client are masked (RFC
 * 6455, 5.3), so a search over the bytes as they are would find nothing; here they are unmasked
 * piece by piece. A message in several frames is searched as one. Compressed messages (RFC 7692)
 * are not read: towards hosts that have a secret compression is not agreed to (exchange.c). */
#include "egress/http/websocket.h"

#include <string.h>

/* The length of a frame's head, as far as is known from its first bytes. */
static size_t head_length(const struct websocket *w)
{
	size_t n = 2;

	if (w->have < 2)
		return 2;
	if ((w->head[1] & 0x7f) == 126)
		n += 2;
	else if ((w->head[1] & 0x7f) == 127)
		n += 8;
	return n + (w->head[1] & 0x80 ? 4 : 0);
}

static void begin_frame(struct websocket *w)
{
	size_t n = w->head[1] & 0x7f, wide = n == 126 ? 2 : n == 127 ? 8 : 0;

	w->left = n;
	if (wide)
		w->left = 0;
	for (size_t i = 0; i < wide; i++)
		w->left = w->left << 8 | w->head[2 + i];
	memset(w->mask, 0, sizeof(w->mask));
	if (w->head[1] & 0x80)
		memcpy(w->mask, w->head + 2 + wide, sizeof(w->mask));
	w->at = 0;
	w->control = w->head[0] & 0x08;
	/* A frame that continues the message goes on where that was; text and binary begin one. */
	if (w->control)
		w->control_state = 0;
	else if (w->head[0] & 0x0f)
		w->state = 0;
	w->have = 0;
}

bool websocket_sent(struct websocket *w, const struct secrets *s, const void *data, size_t len)
{
	const uint8_t *p = data, *end = p + len;
	uint8_t plain[4096];

	if (secrets_sent(s, &w->raw_state, data, len))
		return true;
	while (p < end) {
		size_t n = 0;

		if (w->left == 0) {
			w->head[w->have++] = *p++;
			if (w->have == head_length(w))
				begin_frame(w);
			continue;
		}
		for (; n < sizeof(plain) && p < end && w->left; w->left--)
			plain[n++] = *p++ ^ w->mask[w->at++ & 3];
		if (secrets_sent(s, w->control ? &w->control_state : &w->state, plain, n))
			return true;
	}
	return false;
}
