/* TLS to both sides of an intercepted connection: see tls.h.
 *
 * Process: the broker; tls_new() before it locks itself in, the rest after: no file is read then.
 * What takes OpenSSL long, its lists of ciphers, is made for the first connection that is opened:
 * most boxes never come to it, and each would wait for it at its start.
 * Hostile: both peers. OpenSSL parses; what is ours is which choices are offered.
 *
 * ALPN is mirrored: the client's hello is looked at, the server is asked for the same protocols
 * (those of them that are known here), and what it chooses is what the client gets. So both sides
 * always speak the same version of HTTP, nothing is translated between them (the source of most
 * request smuggling), and a client sees what it would have seen without anything in between. It
 * costs nothing that counts: the client waits for the server's handshake anyway, and its own with
 * us is local. */
#include "egress/http/tls.h"

#include <string.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "egress/http/resume.h"

#define STAGE "egress"

struct tls {
	SSL_CTX *server, *client;
	struct resume resume;
	const char *trust;
	size_t trust_len;
	bool trusted; /* parsed */
};

static const unsigned char alpn_h2[] = "\x02h2";
static const unsigned char alpn_h1[] = "\x08http/1.1";

/* ---------------------------------------------------------------- the client's side */

/* A list of names with a length of one byte each; list: after its own two bytes of length. */
static unsigned read_alpn(const unsigned char *list, size_t len)
{
	unsigned offered = 0;

	for (size_t i = 0; i < len && list[i] && list[i] < len - i; i += 1u + list[i]) {
		if (list[i] == 2 && memcmp(list + i + 1, "h2", 2) == 0)
			offered |= TLS_HTTP2;
		if (list[i] == 8 && memcmp(list + i + 1, "http/1.1", 8) == 0)
			offered |= TLS_HTTP1;
	}
	return offered;
}

/* server_name: list length, then type 0 and the name's length; one name (RFC 6066, 3). */
static void read_sni(struct tls_hello *h, const unsigned char *d, size_t len)
{
	size_t n;

	h->has_sni = true;
	if (len < 5 || (size_t)(d[0] << 8 | d[1]) != len - 2 || d[2] != 0)
		return;
	n = (size_t)(d[3] << 8 | d[4]);
	if (n != len - 5 || network_host_normalise((const char *)d + 5, n, h->sni) < 0)
		h->sni[0] = '\0';
}

static int on_hello(SSL *ssl, int *alert, void *arg)
{
	struct tls_hello *h = SSL_get_app_data(ssl);
	const unsigned char *d;
	size_t len;

	(void)arg;
	if (!h->seen) {
		h->seen = true;
		if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &d, &len) == 1)
			read_sni(h, d, len);
		h->offered = TLS_HTTP1;
		if (SSL_client_hello_get0_ext(ssl,
					      TLSEXT_TYPE_application_layer_protocol_negotiation,
					      &d, &len) == 1) {
			h->has_alpn = true;
			h->offered = len >= 2 && (size_t)(d[0] << 8 | d[1]) == len - 2
					     ? read_alpn(d + 2, len - 2)
					     : 0;
		}
	}
	if (h->refuse) {
		*alert = SSL_AD_ACCESS_DENIED;
		return SSL_CLIENT_HELLO_ERROR;
	}
	return h->decided ? SSL_CLIENT_HELLO_SUCCESS : SSL_CLIENT_HELLO_RETRY;
}

static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
		   const unsigned char *in, unsigned in_len, void *arg)
{
	const struct tls_hello *h = SSL_get_app_data(ssl);

	(void)in;
	(void)in_len;
	(void)arg;
	if (!(h->offered & h->protocol))
		return SSL_TLSEXT_ERR_ALERT_FATAL; /* no_application_protocol */
	*out = h->protocol == TLS_HTTP2 ? alpn_h2 + 1 : alpn_h1 + 1;
	*out_len = h->protocol == TLS_HTTP2 ? alpn_h2[0] : alpn_h1[0];
	return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *context(const SSL_METHOD *method)
{
	SSL_CTX *ctx = SSL_CTX_new(method);

	if (!ctx)
		return NULL;
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	SSL_CTX_set_options(ctx,
			    SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				      SSL_MODE_RELEASE_BUFFERS);
	return ctx;
}

static bool make_contexts(struct tls *t)
{
	if (t->server && t->client)
		return true;
	OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	t->server = context(TLS_server_method());
	t->client = context(TLS_client_method());
	if (!t->server || !t->client || resume_init(&t->resume, t->client) < 0) {
		SSL_CTX_free(t->server);
		SSL_CTX_free(t->client);
		t->server = t->client = NULL;
		return false;
	}
	SSL_CTX_set_client_hello_cb(t->server, on_hello, NULL);
	SSL_CTX_set_alpn_select_cb(t->server, on_alpn, NULL);
	SSL_CTX_set_verify(t->client, SSL_VERIFY_PEER, NULL);
	return true;
}

SSL *tls_server(struct tls *t, struct tls_hello *hello)
{
	SSL *ssl = make_contexts(t) ? SSL_new(t->server) : NULL;

	if (ssl) {
		SSL_set_accept_state(ssl);
		SSL_set_app_data(ssl, hello);
	}
	return ssl;
}

int tls_server_name(SSL *ssl, struct ca *ca, const char *name)
{
	X509 *leaf = ca_leaf(ca, name);
	bool ok = leaf && SSL_use_certificate(ssl, leaf) == 1 &&
		  SSL_use_PrivateKey(ssl, ca_leaf_key(ca)) == 1 &&
		  SSL_add1_chain_cert(ssl, ca_certificate(ca)) == 1;

	X509_free(leaf);
	return ok ? 0 : -ENOMEM;
}

/* ---------------------------------------------------------------- the server's side */

static void parse_trust(struct tls *t)
{
	BIO *bio = BIO_new_mem_buf(t->trust, (int)t->trust_len);
	X509_STORE *store = SSL_CTX_get_cert_store(t->client);
	X509 *x;

	/* What can't be parsed is not trusted; a server that needs it is refused with OpenSSL's
	 * words for an issuer that is not known. PEM_read_bio_X509() skips text between
	 * certificates. */
	for (unsigned misses = 0; bio && misses < 16;) {
		x = PEM_read_bio_X509(bio, NULL, NULL, NULL);
		if (x) {
			X509_STORE_add_cert(store, x);
			X509_free(x);
		} else if (ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE) {
			break;
		} else {
			misses++;
		}
		ERR_clear_error();
	}
	ERR_clear_error();
	BIO_free(bio);
	t->trusted = true;
}

SSL *tls_client(struct tls *t, const char *name, bool name_is_address, uint16_t port,
		unsigned offer, bool alpn)
{
	unsigned char list[sizeof(alpn_h2) + sizeof(alpn_h1)];
	unsigned len = 0;
	X509_VERIFY_PARAM *param;
	SSL *ssl;
	int ok;

	if (!make_contexts(t))
		return NULL;
	if (!t->trusted)
		parse_trust(t);
	ssl = SSL_new(t->client);
	if (!ssl)
		return NULL;
	param = SSL_get0_param(ssl);
	X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	/* A self-signed server or an intermediate authority that the policy names is trusted as it
	 * stands. */
	X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST);
	if (name_is_address)
		ok = X509_VERIFY_PARAM_set1_ip_asc(param, name);
	else
		ok = X509_VERIFY_PARAM_set1_host(param, name, 0) &&
		     SSL_set_tlsext_host_name(ssl, name);
	if (offer & TLS_HTTP2) {
		memcpy(list, alpn_h2, sizeof(alpn_h2) - 1);
		len += sizeof(alpn_h2) - 1;
	}
	if (offer & TLS_HTTP1) {
		memcpy(list + len, alpn_h1, sizeof(alpn_h1) - 1);
		len += sizeof(alpn_h1) - 1;
	}
	if (ok && alpn && len)
		ok = SSL_set_alpn_protos(ssl, list, len) == 0;
	SSL_set_connect_state(ssl);
	if (ok && !name_is_address)
		resume_offer(&t->resume, ssl, name, port);
	if (!ok) {
		SSL_free(ssl);
		return NULL;
	}
	return ssl;
}

enum tls_protocol tls_negotiated(const SSL *ssl)
{
	const unsigned char *p;
	unsigned len;

	SSL_get0_alpn_selected(ssl, &p, &len);
	return len == 2 && memcmp(p, "h2", 2) == 0 ? TLS_HTTP2 : TLS_HTTP1;
}

int tls_new(const char *trust, size_t trust_len, struct tls **ret, struct pale_err *err)
{
	struct tls *t = calloc(1, sizeof(*t));

	*ret = NULL;
	if (!t)
		return err_nomem(err, STAGE);
	/* The host's openssl.cnf is for the host's programs: a box's TLS does not depend on it. */
	OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	t->trust = trust;
	t->trust_len = trust_len;
	*ret = t;
	return 0;
}

void tls_free(struct tls *t)
{
	if (!t)
		return;
	SSL_CTX_free(t->server);
	SSL_CTX_free(t->client);
	resume_done(&t->resume);
	free(t);
}
