/* The first message of TLS, looked at from outside (RFC 8446, 6066). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "policy/network.h"

#define HELLO_MAX 16384 /* with the records around it */

enum hello_state {
	HELLO_MORE,   /* so far it may become one */
	HELLO_NOT,    /* not TLS */
	HELLO_BROKEN, /* TLS, but not a hello that makes sense, or too long */
	HELLO_OK,
};

struct hello {
	char name[NETWORK_HOST_MAX + 1]; /* server_name, normalised; empty: none */
	bool name_broken;		 /* there is one, but it is no host name */
	bool encrypted;			 /* encrypted_client_hello or its predecessor: the name
					    that counts may be another */
};

/* Looks at the first len bytes of a connection. */
enum hello_state hello_parse(const uint8_t *data, size_t len, struct hello *ret);
