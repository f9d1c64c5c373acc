/* TLS to both sides of an intercepted connection. */
#pragma once

#include <openssl/ssl.h>

#include "base/err.h"
#include "egress/http/ca.h"
#include "policy/network.h"

struct tls;

enum tls_protocol { TLS_HTTP1 = 1 << 0, TLS_HTTP2 = 1 << 1 };

/* trust: PEM, borrowed for the life of it; it is parsed when the first connection needs it, because
 * that takes 10 to 20 ms. */
int tls_new(const char *trust, size_t trust_len, struct tls **ret,
	    struct pale_err *err) _must_check_;
void tls_free(struct tls *t);

/* What the client said first, and what it is answered. Lives as long as its SSL. */
struct tls_hello {
	bool seen;
	bool has_sni, has_alpn;
	char sni[NETWORK_HOST_MAX + 1]; /* normalised; empty if it can't be */
	unsigned offered;		/* enum tls_protocol's bits; without ALPN: HTTP/1.1 */
	/* To be set while conn->hello_waits; then conn_handshake(). */
	bool decided;
	enum tls_protocol protocol;
	bool refuse; /* with a fatal alert: access_denied */
};

/* The side of the client: stops after the hello. NULL: no memory. */
SSL *tls_server(struct tls *t, struct tls_hello *hello);
/* Its certificate; before going on with the handshake. */
int tls_server_name(SSL *ssl, struct ca *ca, const char *name) _must_check_;

/* The side of the server: certificate and name are checked, always, if not on this connection then
 * on the one before whose session it goes on with (resume.h). offer: enum tls_protocol's bits; sent
 * as ALPN only if the client did (alpn). */
SSL *tls_client(struct tls *t, const char *name, bool name_is_address, uint16_t port,
		unsigned offer, bool alpn);
/* After the handshake. */
enum tls_protocol tls_negotiated(const SSL *ssl);
