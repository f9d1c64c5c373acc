/* Closing in peace: see linger.h. Runs in the broker. How many connections are refused, and how
 * long their clients go on sending, is up to the box: both are bounded. */
#include "egress/linger.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/clock.h"

#define MAX	 256
#define WAIT_S	 2
#define DROP_MAX (256u << 10)

struct linger_fd {
	TAILQ_ENTRY(linger_fd) entry;
	struct egress *e;
	int fd;
	size_t dropped;
	uint64_t until_us;
	struct event *event;
};

struct lingering {
	TAILQ_HEAD(, linger_fd) all;
	size_t n;
};

static struct lingering lingering = {.all = TAILQ_HEAD_INITIALIZER(lingering.all)};

static void end(struct linger_fd *l)
{
	TAILQ_REMOVE(&lingering.all, l, entry);
	lingering.n--;
	if (l->event)
		event_free(l->event);
	close_fd(&l->fd);
	free(l);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct linger_fd *l = arg;
	char dropped[4096];
	ssize_t n;

	/* The event's own time-out starts anew with each byte. */
	if ((what & EV_TIMEOUT) || clock_mono_us() >= l->until_us) {
		end(l);
		return;
	}
	do {
		n = recv(fd, dropped, sizeof(dropped), MSG_DONTWAIT);
		if (n > 0)
			l->dropped += (size_t)n;
	} while (n > 0 && l->dropped < DROP_MAX);
	if (n == 0 || (n < 0 && errno != EAGAIN) || l->dropped >= DROP_MAX)
		end(l);
}

void linger_close(struct egress *e, int fd)
{
	const struct timeval wait = {.tv_sec = WAIT_S};
	struct linger_fd *l;

	if (shutdown(fd, SHUT_WR) < 0 || lingering.n >= MAX) {
		close(fd);
		return;
	}
	l = calloc(1, sizeof(*l));
	if (!l) {
		close(fd);
		return;
	}
	*l = (struct linger_fd){
		.e = e, .fd = fd, .until_us = clock_mono_us() + WAIT_S * 1000000ull};
	TAILQ_INSERT_TAIL(&lingering.all, l, entry);
	lingering.n++;
	l->event = event_new(e->base, fd, EV_READ | EV_PERSIST | EV_TIMEOUT, on_readable, l);
	if (!l->event || event_add(l->event, &wait) < 0)
		end(l);
}

void linger_reset(int fd)
{
	const struct linger now = {.l_onoff = 1, .l_linger = 0};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

void linger_stop(struct egress *e)
{
	(void)e;
	while (!TAILQ_EMPTY(&lingering.all))
		end(TAILQ_FIRST(&lingering.all));
}
