/* Sessions with servers, so that the next connection to one is made sooner. */
#pragma once

#include <openssl/ssl.h>
#include <stdint.h>

#include "policy/network.h"

#define RESUME_MAX 32

struct resume {
	int port_index; /* of an SSL: where its port is kept */
	struct resume_entry {
		char name[NETWORK_HOST_MAX + 1]; /* empty: free */
		uint16_t port;
		uint64_t at_us;
		SSL_SESSION *session;
	} entries[RESUME_MAX];
};

/* Has sessions of this context kept in r, which outlives it. 0 or -ENOMEM. */
int resume_init(struct resume *r, SSL_CTX *client) _must_check_;
void resume_done(struct resume *r);
/* For a connection to this host (normalised): takes the last one's session up, if there is one. */
void resume_offer(struct resume *r, SSL *ssl, const char *name, uint16_t port);
