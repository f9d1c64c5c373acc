/* Sessions with servers: see resume.h.
 *
 * Process: the broker. Hostile: the servers, which choose what a session's ticket is. A session is
 * kept only from a connection on which the server's certificate and name were verified, and offered
 * only to the same name and port for a short time, so that whoever can take it up is who was
 * verified. */
#include "egress/http/resume.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define KEEP_US (10 * 60 * 1000000ull)

static void drop(struct resume_entry *e)
{
	SSL_SESSION_free(e->session);
	*e = (struct resume_entry){.name = ""};
}

static struct resume_entry *find(struct resume *r, const char *name, uint16_t port)
{
	for (size_t i = 0; i < RESUME_MAX; i++)
		if (r->entries[i].session && r->entries[i].port == port &&
		    strcmp(r->entries[i].name, name) == 0)
			return &r->entries[i];
	return NULL;
}

/* A free one, or the oldest. */
static struct resume_entry *oldest(struct resume *r)
{
	struct resume_entry *e = &r->entries[0];

	for (size_t i = 1; i < RESUME_MAX; i++)
		if (r->entries[i].at_us < e->at_us)
			e = &r->entries[i];
	return e;
}

static int on_session(SSL *ssl, SSL_SESSION *session)
{
	struct resume *r = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	uint16_t port = (uint16_t)(uintptr_t)SSL_get_ex_data(ssl, r->port_index);
	SSL_SESSION *copy;
	struct resume_entry *e;

	if (!name || strlen(name) > NETWORK_HOST_MAX || SSL_get_verify_result(ssl) != X509_V_OK)
		return 0;
	/* A connection that ends without a word spoils its own. */
	copy = SSL_SESSION_dup(session);
	if (!copy)
		return 0;
	e = find(r, name, port);
	if (!e)
		e = oldest(r);
	drop(e);
	snprintf(e->name, sizeof(e->name), "%s", name);
	e->port = port;
	e->at_us = clock_mono_us();
	e->session = copy;
	return 0; /* OpenSSL's own reference stays its own */
}

int resume_init(struct resume *r, SSL_CTX *client)
{
	r->port_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
	if (r->port_index < 0 || SSL_CTX_set_app_data(client, r) != 1)
		return -ENOMEM;
	SSL_CTX_set_session_cache_mode(client, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_clear_options(client, SSL_OP_NO_TICKET);
	SSL_CTX_sess_set_new_cb(client, on_session);
	return 0;
}

void resume_done(struct resume *r)
{
	for (size_t i = 0; i < RESUME_MAX; i++)
		drop(&r->entries[i]);
}

void resume_offer(struct resume *r, SSL *ssl, const char *name, uint16_t port)
{
	struct resume_entry *e = find(r, name, port);
	bool fresh = e && clock_mono_us() - e->at_us < KEEP_US;
	SSL_SESSION *copy = fresh ? SSL_SESSION_dup(e->session) : NULL;

	/* By it, what the server gives is kept. */
	(void)!SSL_set_ex_data(ssl, r->port_index, (void *)(uintptr_t)port);
	if (copy)
		(void)!SSL_set_session(ssl, copy);
	SSL_SESSION_free(copy);
	/* Who listens could tell by a ticket of TLS 1.3 whose connections belong together, and the
	 * server gives new ones. */
	if (e && (!fresh || SSL_SESSION_get_protocol_version(e->session) >= TLS1_3_VERSION))
		drop(e);
}
