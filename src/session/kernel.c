/* The kernel channel: see kernel.h. In the supervisor, in its event loop; nothing here waits.
 *
 * Hostile: everything that is received. A message is bounded, and so is what one turn takes, so
 * that a kernel that never stops sending keeps nothing from its turn. A sender may die half-way
 * through a message: what does not continue what was begun begins anew. */
#include "session/kernel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/fd.h"

#define STAGE  "session"
#define TURN   64	   /* packets taken before the others get their turn */
#define QUEUED (32u << 20) /* bytes that wait to be sent */

struct packet {
	STAILQ_ENTRY(packet) entry;
	size_t len;
	unsigned char data[];
};

struct kernel {
	struct kernel_config config;
	int fd;
	struct event *readable, *writable;
	STAILQ_HEAD(, packet) queue;
	size_t queued;
	struct buf in; /* the data of the message that is coming */
	size_t bytes;  /* that came of it */
	struct frame first;
	char key[FRAME_KEY_MAX];
	bool coming, ended, busy;
	unsigned char packet[FRAME_PACKET_MAX];
};

static void end(struct kernel *k, const char *why)
{
	if (k->ended)
		return;
	k->ended = true;
	event_del(k->readable);
	event_del(k->writable);
	k->config.ended(k->config.arg, why);
}

/* ---- sending ---- */

/* 0, -EAGAIN if it does not fit now, or another negative errno. */
static int send_packet(struct kernel *k, const struct packet *p)
{
	for (;;) {
		if (send(k->fd, p->data, p->len, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
			return 0;
		if (errno != EINTR)
			return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	}
}

static void flush(struct kernel *k)
{
	struct packet *p;

	while ((p = STAILQ_FIRST(&k->queue))) {
		int r = send_packet(k, p);

		if (r == -EAGAIN) {
			if (event_add(k->writable, NULL) < 0)
				event_active(k->writable, EV_WRITE, 1);
			return;
		}
		STAILQ_REMOVE_HEAD(&k->queue, entry);
		k->queued -= p->len;
		free(p);
		/* Whoever does not listen any more is heard of by its end. */
		if (r < 0)
			return;
	}
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	flush(arg);
}

int kernel_send(struct kernel *k, const struct frame *f, struct pale_err *err)
{
	struct frame part = *f;
	size_t at = 0;

	if (f->data_len > KERNEL_SEND_MAX || f->key_len > FRAME_KEY_MAX)
		return err_set(err, PALE_E_USAGE, STAGE, 0,
			       "a message to the kernel has at most %u MiB", KERNEL_SEND_MAX >> 20);
	if (k->queued + f->data_len > QUEUED)
		return err_set(err, PALE_E_SYSTEM, STAGE, 0, "the kernel does not listen");
	do {
		struct packet *p;
		size_t head;

		part.data_len =
			f->data_len - at < FRAME_DATA_MAX ? f->data_len - at : FRAME_DATA_MAX;
		part.flags = f->flags;
		if (at + part.data_len < f->data_len)
			part.flags |= FRAME_MORE;
		p = malloc(sizeof(*p) + FRAME_HEADER + FRAME_KEY_MAX + part.data_len);
		if (!p)
			return err_nomem(err, STAGE);
		head = frame_pack(&part, p->data);
		if (part.data_len)
			memcpy(p->data + head, f->data + at, part.data_len);
		p->len = head + part.data_len;
		STAILQ_INSERT_TAIL(&k->queue, p, entry);
		k->queued += p->len;
		at += part.data_len;
	} while (at < f->data_len);
	flush(k);
	return 0;
}

/* ---- receiving ---- */

static bool continues(const struct kernel *k, const struct frame *f)
{
	return k->coming && f->kind == k->first.kind && f->id == k->first.id &&
	       f->value == k->first.value && f->key_len == k->first.key_len &&
	       memcmp(f->key, k->key, f->key_len) == 0;
}

static void take(struct kernel *k, const struct frame *f)
{
	struct frame whole;

	if (!continues(k, f)) {
		k->in.len = 0;
		k->in.failed = false;
		k->coming = false;
	}
	if (!k->coming && !(f->flags & FRAME_MORE)) {
		k->config.message(k->config.arg, f);
		return;
	}
	if (!k->coming) {
		k->first = *f;
		memcpy(k->key, f->key, f->key_len);
		k->bytes = 0;
		k->coming = true;
	}
	k->bytes += f->data_len;
	if (!k->in.failed)
		(void)!buf_add(&k->in, f->data, f->data_len);
	if (f->flags & FRAME_MORE)
		return;
	whole = *f;
	whole.key = k->key;
	whole.data = k->in.failed ? NULL : k->in.data;
	whole.data_len = k->in.failed ? 0 : k->in.len;
	whole.lost = k->in.failed ? k->bytes : 0;
	k->coming = false;
	k->config.message(k->config.arg, &whole);
	buf_done(&k->in);
	k->in = BUF_INIT(KERNEL_RECEIVE_MAX);
}

/* One packet: false, if there is none now. */
static bool receive(struct kernel *k)
{
	struct frame f;
	ssize_t n;

	do
		n = recv(k->fd, k->packet, sizeof(k->packet), MSG_DONTWAIT | MSG_TRUNC);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return false;
	if (n <= 0) {
		end(k, NULL);
		return false;
	}
	k->config.before(k->config.arg);
	if (!frame_parse(k->packet, (size_t)n, &f)) {
		end(k, "the kernel sent what is no message");
		return false;
	}
	take(k, &f);
	return !k->ended;
}

static void receive_all(struct kernel *k, int at_most)
{
	/* What a message leads to may come back here. */
	if (k->busy || k->ended)
		return;
	k->busy = true;
	while (at_most-- > 0 && receive(k))
		;
	k->busy = false;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	receive_all(arg, TURN);
}

void kernel_drain(struct kernel *k)
{
	receive_all(k, TURN);
}

/* ---- */

int kernel_new(const struct kernel_config *config, struct kernel **ret, struct pale_err *err)
{
	struct kernel *k = calloc(1, sizeof(*k));
	int fd = config->fd;

	if (!k) {
		close_fd(&fd);
		return err_nomem(err, STAGE);
	}
	k->config = *config;
	k->fd = fd;
	k->in = BUF_INIT(KERNEL_RECEIVE_MAX);
	STAILQ_INIT(&k->queue);
	*ret = k;
	k->readable = event_new(config->base, k->fd, EV_READ | EV_PERSIST, on_readable, k);
	k->writable = event_new(config->base, k->fd, EV_WRITE, on_writable, k);
	if (!k->readable || !k->writable || event_add(k->readable, NULL) < 0)
		return err_nomem(err, STAGE);
	return 0;
}

void kernel_free(struct kernel *k)
{
	struct packet *p;

	if (!k)
		return;
	while ((p = STAILQ_FIRST(&k->queue))) {
		STAILQ_REMOVE_HEAD(&k->queue, entry);
		free(p);
	}
	if (k->readable)
		event_free(k->readable);
	if (k->writable)
		event_free(k->writable);
	close_fd(&k->fd);
	buf_done(&k->in);
	free(k);
}
