/* Accepting: see listener.h. Runs in the broker; who connects, and how often, is up to the box. */
#include "egress/listener.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#define BATCH	 64 /* connections taken before others get their turn */
#define PAUSE_MS 50 /* when there are no descriptors: the backlog waits, nobody spins */

struct listener {
	int fd;
	void (*taken)(int client, void *arg);
	void *arg;
	struct event *readable, *pause;
};

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	const struct timeval pause = {.tv_usec = PAUSE_MS * 1000};
	struct listener *l = arg;

	(void)what;
	for (int i = 0; i < BATCH; i++) {
		int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (client >= 0) {
			l->taken(client, l->arg);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			event_del(l->readable);
			if (event_add(l->pause, &pause) < 0)
				event_add(l->readable, NULL);
		}
		if (errno != ECONNABORTED && errno != EINTR)
			return;
	}
}

static void on_pause(evutil_socket_t fd, short what, void *arg)
{
	struct listener *l = arg;

	(void)fd;
	(void)what;
	event_add(l->readable, NULL);
}

struct listener *listener_new(struct event_base *base, int fd, void (*taken)(int client, void *arg),
			      void *arg)
{
	struct listener *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	*l = (struct listener){.fd = fd, .taken = taken, .arg = arg};
	l->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, l);
	l->pause = event_new(base, -1, 0, on_pause, l);
	if (l->readable && l->pause && event_add(l->readable, NULL) == 0)
		return l;
	listener_free(l);
	return NULL;
}

void listener_free(struct listener *l)
{
	if (!l)
		return;
	if (l->readable)
		event_free(l->readable);
	if (l->pause)
		event_free(l->pause);
	free(l);
}
