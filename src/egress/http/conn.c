/* One side of a flow: see conn.h.
 *
 * Process: the broker, confined. Hostile: everything that is read. OpenSSL parses the TLS records;
 * nothing here looks into the bytes. */
#include "egress/http/conn.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <openssl/err.h>

#define READ_AT_ONCE (64u << 10) /* then others get their turn */
#define RECORD	     (16u << 10)

static void fail(struct conn *c, const char *why)
{
	c->failed = true;
	if (!c->why[0])
		snprintf(c->why, sizeof(c->why), "%s", why);
	event_del(c->read_ev);
	event_del(c->write_ev);
}

static void fail_errno(struct conn *c)
{
	fail(c, errno ? strerrordesc_np(errno) : "the connection was closed");
}

static void fail_ssl(struct conn *c, int error)
{
	unsigned long e = ERR_peek_last_error();
	long verify = SSL_get_verify_result(c->ssl);
	const char *reason = e ? ERR_reason_error_string(e) : NULL;

	if (!SSL_is_server(c->ssl) && verify != X509_V_OK)
		fail(c, X509_verify_cert_error_string(verify));
	else if (reason)
		fail(c, reason);
	else if (error == SSL_ERROR_SYSCALL && errno)
		fail_errno(c);
	else
		fail(c, c->handshaking ? "the connection was closed during the TLS handshake"
				       : "the connection was closed");
	ERR_clear_error();
}

static void want(struct conn *c)
{
	bool room = evbuffer_get_length(c->in) < CONN_HIGH;

	if (c->failed || c->handshaking)
		return;
	if (c->reading && room && !c->eof)
		event_add(c->read_ev, NULL);
	else
		event_del(c->read_ev);
	if (evbuffer_get_length(c->out) || (c->ending && !c->ended))
		event_add(c->write_ev, NULL);
	else
		event_del(c->write_ev);
	/* A record that OpenSSL has read already does not make the socket readable. */
	if (c->reading && room && !c->eof && c->ssl && SSL_pending(c->ssl))
		event_active(c->read_ev, EV_READ, 0);
	/* After the above, which takes back what is active. */
	if (c->wake)
		event_active(c->write_ev, EV_WRITE, 0);
}

static void handshake(struct conn *c)
{
	int r;

	ERR_clear_error();
	errno = 0;
	c->hello_waits = false;
	r = SSL_do_handshake(c->ssl);
	if (r == 1) {
		c->handshaking = false;
		event_del(c->read_ev);
		event_del(c->write_ev);
		want(c);
		return;
	}
	r = SSL_get_error(c->ssl, r);
	event_del(c->read_ev);
	event_del(c->write_ev);
	if (r == SSL_ERROR_WANT_READ)
		event_add(c->read_ev, NULL);
	else if (r == SSL_ERROR_WANT_WRITE)
		event_add(c->write_ev, NULL);
	else if (r == SSL_ERROR_WANT_CLIENT_HELLO_CB)
		c->hello_waits = true;
	else
		fail_ssl(c, r);
}

static void read_ssl(struct conn *c)
{
	for (size_t n = 0; n < READ_AT_ONCE && evbuffer_get_length(c->in) < CONN_HIGH;) {
		struct evbuffer_iovec v;
		int r, e;

		if (evbuffer_reserve_space(c->in, RECORD, &v, 1) < 1) {
			fail(c, "out of memory");
			return;
		}
		ERR_clear_error();
		errno = 0;
		r = SSL_read(c->ssl, v.iov_base, (int)(v.iov_len < RECORD ? v.iov_len : RECORD));
		if (r > 0) {
			v.iov_len = (size_t)r;
			evbuffer_commit_space(c->in, &v, 1);
			c->read_bytes += (size_t)r;
			n += (size_t)r;
			continue;
		}
		e = SSL_get_error(c->ssl, r);
		if (e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE)
			return;
		if (e == SSL_ERROR_ZERO_RETURN) {
			c->eof = true;
		} else if ((e == SSL_ERROR_SYSCALL && errno == 0) ||
			   (e == SSL_ERROR_SSL && ERR_GET_REASON(ERR_peek_last_error()) ==
							  SSL_R_UNEXPECTED_EOF_WHILE_READING)) {
			c->eof = c->cut = true;
			ERR_clear_error();
		} else {
			fail_ssl(c, e);
		}
		return;
	}
}

static void read_plain(struct conn *c)
{
	errno = 0;
	int r = evbuffer_read(c->in, c->fd, READ_AT_ONCE);

	if (r > 0)
		c->read_bytes += (size_t)r;
	else if (r == 0)
		c->eof = true;
	else if (errno != EAGAIN && errno != EINTR)
		fail_errno(c);
}

static bool write_ssl(struct conn *c)
{
	size_t len = evbuffer_get_length(c->out);
	size_t n = len < RECORD ? len : RECORD;
	const void *data = evbuffer_pullup(c->out, (ev_ssize_t)n);
	int r, e;

	if (!data) {
		fail(c, "out of memory");
		return false;
	}
	ERR_clear_error();
	errno = 0;
	r = SSL_write(c->ssl, data, (int)n);
	if (r > 0) {
		evbuffer_drain(c->out, (size_t)r);
		c->written_bytes += (size_t)r;
		return true;
	}
	e = SSL_get_error(c->ssl, r);
	if (e != SSL_ERROR_WANT_READ && e != SSL_ERROR_WANT_WRITE)
		fail_ssl(c, e);
	return false;
}

static bool write_plain(struct conn *c)
{
	errno = 0;
	int r = evbuffer_write(c->out, c->fd);

	if (r > 0) {
		c->written_bytes += (size_t)r;
		return true;
	}
	if (r < 0 && errno != EAGAIN && errno != EINTR)
		fail_errno(c);
	return false;
}

static void write_out(struct conn *c)
{
	while (!c->failed && evbuffer_get_length(c->out))
		if (!(c->ssl ? write_ssl(c) : write_plain(c)))
			return;
	if (!c->failed && c->ending && !c->ended) {
		c->ended = true;
		ERR_clear_error();
		if (c->ssl && !c->ragged)
			(void)SSL_shutdown(c->ssl); /* close_notify; the peer's is not waited for */
		shutdown(c->fd, SHUT_WR);
		ERR_clear_error();
	}
}

static void on_event(evutil_socket_t fd, short what, void *arg)
{
	struct conn *c = arg;

	(void)fd;
	c->wake = false;
	if (c->failed) {
		; /* conn_flush() failed, and the owner is to hear of it */
	} else if (c->handshaking) {
		handshake(c);
		if (c->handshaking && !c->hello_waits && !c->failed)
			return;
	} else {
		if (what & EV_READ && c->reading && !c->eof)
			c->ssl ? read_ssl(c) : read_plain(c);
		if (what & EV_WRITE && !c->failed)
			write_out(c);
		want(c);
	}
	c->cb(c, c->arg);
}

struct conn *conn_new(struct event_base *base, int fd, bool own_fd, SSL *ssl, conn_cb cb, void *arg)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (c) {
		*c = (struct conn){.fd = fd, .own_fd = own_fd, .ssl = ssl, .cb = cb, .arg = arg};
		c->handshaking = ssl != NULL;
		c->in = evbuffer_new();
		c->out = evbuffer_new();
		c->read_ev = event_new(base, fd, EV_READ | EV_PERSIST, on_event, c);
		c->write_ev = event_new(base, fd, EV_WRITE | EV_PERSIST, on_event, c);
	}
	if (!c || !c->in || !c->out || !c->read_ev || !c->write_ev ||
	    (ssl && SSL_set_fd(ssl, fd) != 1)) {
		if (c)
			c->own_fd = false;
		conn_free(c);
		if (!c)
			SSL_free(ssl);
		return NULL;
	}
	return c;
}

void conn_free(struct conn *c)
{
	if (!c)
		return;
	if (c->read_ev)
		event_free(c->read_ev);
	if (c->write_ev)
		event_free(c->write_ev);
	SSL_free(c->ssl);
	if (c->in)
		evbuffer_free(c->in);
	if (c->out)
		evbuffer_free(c->out);
	if (c->own_fd)
		close(c->fd);
	free(c);
}

void conn_handshake(struct conn *c)
{
	if (!c->failed && c->handshaking)
		event_active(c->read_ev, EV_READ, 0);
}

void conn_read(struct conn *c, bool on)
{
	c->reading = on;
	want(c);
}

void conn_flush(struct conn *c)
{
	bool was_full = !conn_room(c);

	if (c->failed || c->handshaking)
		return;
	write_out(c);
	/* Also of the room that it may have stopped for: nothing else may come that tells it. */
	c->wake = c->wake || (was_full && conn_room(c));
	want(c);
	/* The owner learns of a failure from the loop, as of every other change. */
	if (c->failed)
		event_active(c->write_ev, EV_WRITE, 0);
}

void conn_reset(struct conn *c)
{
	const struct linger at_once = {.l_onoff = 1};

	setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

void conn_end(struct conn *c)
{
	c->ending = true;
	conn_flush(c);
}
