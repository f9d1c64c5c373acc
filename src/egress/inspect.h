/* From a door to a carrier: what may this flow be, what does it begin with, and so who carries it,
 * or how is it refused. */
#pragma once

#include "egress/flow.h"

/* Takes the flow over: host or address, port and door are set, and nothing of the client's bytes
 * was read. Raw TCP goes on at once; else the first bytes are peeked at. */
void inspect_start(struct flow *f);

/* Refuses in words, as HTTP's 403, TLS's alert or SSH's disconnect message, and ends the flow. */
enum inspect_voice { VOICE_NONE, VOICE_HTTP, VOICE_TLS, VOICE_SSH };
void inspect_refuse(struct flow *f, enum inspect_voice voice, int rule, const char *detail,
		    const char *accept);

/* What the first bytes of a client are. */
enum inspect_kind { KIND_MORE, KIND_TLS, KIND_HTTP, KIND_SSH, KIND_OTHER };
enum inspect_kind inspect_kind_of(const uint8_t *data, size_t len);

/* The parts of an HTTP request's head that a refusal needs; what does not fit is cut. false: the
 * head is not whole yet. */
struct inspect_head {
	char method[24], path[512], accept[256];
};
bool inspect_head_parse(const char *data, size_t len, struct inspect_head *ret);
