/* Published ports: see inbound.h.
 *
 * In the supervisor. The broker asks for a connection by the index of a policy's entry, so it gets
 * none to another port; the first process connects and hands the socket out. Both may have been
 * taken over by who they read: what the one asks is bounded, and what the other hands out is passed
 * on only if it is a TCP socket of the box's own network, by the kernel's word for that
 * (SO_NETNS_COOKIE): a socket of the host's, had somebody got hold of one, would make the host's
 * broker speak for it. Nothing here waits for either of them. */
#include "supervise/inbound.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "supervise/publish.h"
#include "supervise/run.h"

#define STAGE	  "supervise"
#define ASKED_MAX 64 /* that the first process has not answered yet */

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

struct asked {
	bool used;
	uint32_t broker_id;
	uint32_t id; /* to the first process: a new one each time */
	uint16_t port;
};

struct inbound {
	struct publish *publish;
	uint64_t netns; /* the box's */
	struct asked asked[ASKED_MAX];
	uint32_t next_id;
};

int inbound_open(struct run *run, struct pale_err *err)
{
	const struct plan *plan = run->plan;
	socklen_t len;

	if (!plan->network || !plan->network->npublish)
		return 0;
	run->inbound = calloc(1, sizeof(*run->inbound));
	if (!run->inbound)
		return err_nomem(err, STAGE);
	len = sizeof(run->inbound->netns);
	if (getsockopt(run->box.egress_fds[EGRESS_TCP4], SOL_SOCKET, SO_NETNS_COOKIE,
		       &run->inbound->netns, &len) < 0)
		return err_set(err, PALE_E_HOST, STAGE, errno,
			       "network.publish needs Linux 5.14: this kernel cannot tell whose "
			       "network a socket belongs to");
	return publish_open(plan->network, &run->inbound->publish, err);
}

int inbound_hand_over(struct run *run, struct pale_err *err)
{
	struct inbound *in = run->inbound;
	int r = 0;

	if (!in)
		return 0;
	for (size_t i = 0; r == 0 && i < run->plan->network->npublish; i++) {
		const int *fds;
		size_t n = publish_listeners(in->publish, i, &fds);

		r = broker_publish(run->broker, (uint32_t)i, fds, n, err);
	}
	publish_handed_over(in->publish);
	if (r < 0)
		return r;
	run->result->published = publish_to_json(in->publish);
	return audit_append(run->log, STAGE, "network.published",
			    json_pack("{sO}", "ports", run->result->published), err);
}

void inbound_free(struct inbound *in)
{
	if (!in)
		return;
	publish_free(in->publish);
	free(in);
}

static int ask(struct run *run, const struct asked *a)
{
	const struct init_message m = {.kind = INIT_CONNECT, .value = a->port, .id = a->id};

	return send(run->box.control_fd, &m, sizeof(m), MSG_DONTWAIT | MSG_NOSIGNAL) ==
			       (ssize_t)sizeof(m)
		       ? 0
		       : -errno;
}

void inbound_wanted(struct run *run, uint32_t id, uint32_t index)
{
	struct inbound *in = run->inbound;
	int r = -EAGAIN;

	if (!in || index >= run->plan->network->npublish) {
		broker_connected(run->broker, id, EACCES, -1);
		return;
	}
	for (size_t i = 0; i < ASKED_MAX; i++) {
		struct asked *a = &in->asked[i];

		if (a->used)
			continue;
		*a = (struct asked){.used = true,
				    .broker_id = id,
				    .id = in->next_id++,
				    .port = run->plan->network->publish[index].port};
		r = ask(run, a);
		a->used = r == 0;
		break;
	}
	if (r < 0)
		broker_connected(run->broker, id, -r, -1);
}

ssize_t inbound_hear(struct run *run, struct init_message *ret, int *ret_fd)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {ret, sizeof(*ret)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;
	ssize_t n;

	/* The kernel drops what there is no room for. */
	if (run->inbound) {
		msg.msg_control = control.space;
		/* Not CMSG_SPACE(), which has room for two. */
		msg.msg_controllen = CMSG_LEN(sizeof(int));
	}
	*ret_fd = -1;
	n = recvmsg(run->box.control_fd, &msg, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
	c = n < 0 ? NULL : CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
	return n;
}

static bool option_is(int fd, int option, int value)
{
	int got;
	socklen_t len = sizeof(got);

	return getsockopt(fd, SOL_SOCKET, option, &got, &len) == 0 && got == value;
}

/* That it is connected to the port is seen by the broker, when it is. */
static bool is_the_boxs(const struct inbound *in, int fd)
{
	uint64_t netns = 0;
	socklen_t len = sizeof(netns);

	return (option_is(fd, SO_DOMAIN, AF_INET) || option_is(fd, SO_DOMAIN, AF_INET6)) &&
	       option_is(fd, SO_TYPE, SOCK_STREAM) && option_is(fd, SO_PROTOCOL, IPPROTO_TCP) &&
	       option_is(fd, SO_ACCEPTCONN, 0) &&
	       getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &netns, &len) == 0 && netns == in->netns;
}

void inbound_made(struct run *run, const struct init_message *m, int fd)
{
	_cleanup_close_ int made = fd;
	struct inbound *in = run->inbound;

	for (size_t i = 0; in && i < ASKED_MAX; i++) {
		struct asked *a = &in->asked[i];

		if (!a->used || a->id != m->id)
			continue;
		a->used = false;
		if (made >= 0 && is_the_boxs(in, made))
			broker_connected(run->broker, a->broker_id, 0, made);
		else
			broker_connected(run->broker, a->broker_id,
					 m->value > 0 && m->value < 4096 ? m->value : EPROTO, -1);
		return;
	}
}
