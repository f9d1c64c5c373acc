/* One side of a flow: a non-blocking socket, with TLS or without, and a buffer each way.
 *
 * Our own pump, not libevent's bufferevent_openssl: the server's side must stop in the middle of
 * its handshake until the other server's choice of protocol is known
 * (SSL_ERROR_WANT_CLIENT_HELLO_CB, which libevent takes for a failure), the peers' reasons for
 * ending must be told, and one kind of object serves clear text and TLS. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <openssl/ssl.h>

#include "base/cleanup.h"

#define CONN_HIGH (64u << 10) /* more than this waits in a buffer only if one step adds more */

struct conn;
/* Something may have changed: bytes came, the end, a failure, room for output, a step of the
 * handshake. It may free the conn. */
typedef void (*conn_cb)(struct conn *c, void *arg);

struct conn {
	int fd;
	bool own_fd;
	SSL *ssl; /* or NULL */
	struct event *read_ev, *write_ev;
	struct evbuffer *in, *out;
	conn_cb cb;
	void *arg;
	bool handshaking, hello_waits; /* hello_waits: tls.h's decision is needed to go on */
	bool eof;		       /* nothing more comes, in order */
	bool cut;		       /* eof, but TLS did not say so: it may be an attacker's */
	bool failed;		       /* neither reading nor writing works any more; see why */
	bool wake;		       /* the owner is to be called, although nothing has come */
	bool reading;		       /* wanted by conn_read() */
	bool ending, ended;	       /* the output's end is asked for; has been sent */
	bool ragged;		       /* end without TLS saying so, as the other side did */
	uint64_t read_bytes, written_bytes;
	char why[160];
};

/* own_fd: closes it in the end. Takes ssl over also if it fails (NULL: no memory). ssl's role is
 * set. */
struct conn *conn_new(struct event_base *base, int fd, bool own_fd, SSL *ssl, conn_cb cb,
		      void *arg);
void conn_free(struct conn *c);

/* Goes on with the handshake; the callback comes from the loop. */
void conn_handshake(struct conn *c);
/* Wants input (as long as there is room for it), or leaves it to the kernel. */
void conn_read(struct conn *c, bool on);
/* Writes what it can, and the rest as the peer takes it. Not from within the callback chain of
 * freed objects: it never calls back by itself. */
void conn_flush(struct conn *c);
/* When the descriptor is closed, the peer gets a reset: what it has is not all. */
void conn_reset(struct conn *c);
/* After what is in `out`, the end. */
void conn_end(struct conn *c);
static inline bool conn_room(const struct conn *c)
{
	return evbuffer_get_length(c->out) < CONN_HIGH;
}
