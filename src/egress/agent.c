/* The caller's ssh agent: see agent.h.
 *
 * Runs in the broker. Whoever is in the box writes what is read here. An agent signs what it is
 * given; whom that helps is seen only by its content. So a request is passed on only if
 *  - the client has bound its connection to a session (session-bind@openssh.com, which ssh does by
 *    itself since OpenSSH 8.9): it names the server's host key, and that key's signature over the
 *    session's identifier, which the server made in the key exchange, and which nobody else can
 * make;
 *  - the key is one that the caller's known_hosts has for a host of network.ssh_agent;
 *  - the session is not one that the agent is forwarded over, to be used by that server;
 *  - what is to be signed is a login in that very session.
 * A signature is then worth nothing but for that login at that server. Everything else that an
 * agent can be asked for (keys added, removed, locked) fails here and never reaches it.
 *
 * There is one connection to the agent, and one request on it at a time. */
#include "egress/agent.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "egress/agent_key.h"
#include "egress/agent_wire.h"
#include "egress/listener.h"

#define CLIENTS_MAX 16
#define KEYS_MAX    256
#define KEY_MAX	    8192  /* bytes of one host key */
#define WAIT_MS	    60000 /* for the agent, which may ask a person */

struct host_key {
	char host[NETWORK_HOST_MAX + 1];
	uint8_t *data;
	size_t len;
};

enum bound { BOUND_NOT, BOUND_WELL, BOUND_BADLY };

struct client {
	TAILQ_ENTRY(client) entry;
	struct agent *a;
	struct bufferevent *io;
	bool waits;   /* for the agent */
	uint8_t type; /* of the request that waits */
	struct evbuffer *request;
	struct egress_event ev; /* of it */
	enum bound bound;
	const char *why;	    /* BOUND_BADLY */
	const struct host_key *key; /* BOUND_WELL */
	uint8_t session_id[128];
	size_t session_len;
};

struct agent {
	struct egress *e;
	struct host_key *keys;
	size_t nkeys;
	int fd; /* the listener */
	struct listener *listener;
	TAILQ_HEAD(, client) clients;
	size_t nclients;
	struct bufferevent *upstream; /* NULL: none, or gone */
	struct client *asked;	      /* whose request the agent has; NULL with busy: who is gone */
	bool busy;
};

/* ---------------------------------------------------------------- events */

static void tell(struct client *c, enum egress_outcome outcome, const char *detail)
{
	c->ev.outcome = outcome;
	EVENT_TEXT(c->ev.detail, detail);
	event_tell(c->a->e, &c->ev);
}

static void begin_event(struct client *c, const char *request)
{
	c->ev = (struct egress_event){.what = EGRESS_AGENT_USE, .rule = -1};
	EVENT_TEXT(c->ev.method, request);
	if (c->bound == BOUND_WELL)
		EVENT_TEXT(c->ev.host, c->key->host);
}

/* ---------------------------------------------------------------- answers */

static void answer(struct client *c, uint8_t type)
{
	const uint8_t message[] = {0, 0, 0, 1, type};

	bufferevent_write(c->io, message, sizeof(message));
}

static void refuse(struct client *c, const char *detail)
{
	tell(c, EGRESS_BLOCKED, detail);
	answer(c, AGENT_FAILURE);
}

static void read_client(struct client *c);
static void ask_next(struct agent *a);

/* The client's request is settled: the next one. */
static void go_on(struct client *c)
{
	c->waits = false;
	evbuffer_drain(c->request, evbuffer_get_length(c->request));
	bufferevent_enable(c->io, EV_READ);
	read_client(c);
}

static void client_free(struct client *c)
{
	struct agent *a = c->a;

	TAILQ_REMOVE(&a->clients, c, entry);
	a->nclients--;
	/* Its answer is nobody's then. */
	if (a->asked == c)
		a->asked = NULL;
	if (c->io)
		bufferevent_free(c->io);
	if (c->request)
		evbuffer_free(c->request);
	free(c);
}

/* ---------------------------------------------------------------- the caller's agent */

/* Whole, or not at all: what an agent says that we don't understand is a refusal. */
static void settle(struct client *c, const uint8_t *data, size_t len)
{
	_cleanup_buf_ struct buf b = BUF_INIT(2 * AGENT_MESSAGE_MAX);
	const uint8_t head[] = {(uint8_t)(len >> 24), (uint8_t)(len >> 16), (uint8_t)(len >> 8),
				(uint8_t)len};
	uint8_t type = len ? data[0] : 0;

	if (c->type == AGENT_SIGN_REQUEST && type == AGENT_SIGN_RESPONSE) {
		tell(c, EGRESS_ALLOWED, NULL);
		bufferevent_write(c->io, head, sizeof(head));
		bufferevent_write(c->io, data, len);
	} else if (c->type == AGENT_REQUEST_IDENTITIES &&
		   agent_without_comments((struct agent_bytes){data, len}, &b) == 0) {
		tell(c, EGRESS_ALLOWED, NULL);
		bufferevent_write(c->io, b.data, b.len);
	} else {
		tell(c, EGRESS_UNREACHABLE, "the caller's agent refused");
		answer(c, AGENT_FAILURE);
	}
	go_on(c);
}

static void upstream_gone(struct agent *a)
{
	struct client *c, *next;

	if (a->upstream)
		bufferevent_free(a->upstream);
	a->upstream = NULL;
	a->busy = false;
	a->asked = NULL;
	for (c = TAILQ_FIRST(&a->clients); c; c = next) {
		next = TAILQ_NEXT(c, entry);
		if (!c->waits)
			continue;
		tell(c, EGRESS_UNREACHABLE, "the caller's agent is gone");
		answer(c, AGENT_FAILURE);
		go_on(c);
	}
}

static void on_answer(struct bufferevent *io, void *arg)
{
	struct evbuffer *in = bufferevent_get_input(io);
	struct agent *a = arg;
	uint8_t head[4];
	uint32_t len;

	while (evbuffer_get_length(in) >= sizeof(head)) {
		struct client *c = a->asked;
		const uint8_t *message;

		evbuffer_copyout(in, head, sizeof(head));
		len = agent_length(head);
		if (!len || !a->busy) {
			upstream_gone(a);
			return;
		}
		if (evbuffer_get_length(in) < sizeof(head) + len)
			return;
		evbuffer_drain(in, sizeof(head));
		message = evbuffer_pullup(in, (ev_ssize_t)len);
		if (!message) {
			upstream_gone(a);
			return;
		}
		a->busy = false;
		a->asked = NULL;
		bufferevent_set_timeouts(io, NULL, NULL);
		if (c)
			settle(c, message, len);
		evbuffer_drain(in, len);
		ask_next(a);
	}
}

static void on_upstream(struct bufferevent *io, short what, void *arg)
{
	(void)io;
	(void)what;
	upstream_gone(arg);
}

static void ask_next(struct agent *a)
{
	const struct timeval wait = {.tv_sec = WAIT_MS / 1000};
	struct client *c;

	if (a->busy || !a->upstream)
		return;
	TAILQ_FOREACH(c, &a->clients, entry)
	{
		if (c->waits)
			break;
	}
	if (!c)
		return;
	a->busy = true;
	a->asked = c;
	bufferevent_set_timeouts(a->upstream, &wait, NULL);
	bufferevent_write_buffer(a->upstream, c->request);
	/* Whose turn is next. */
	TAILQ_REMOVE(&a->clients, c, entry);
	TAILQ_INSERT_TAIL(&a->clients, c, entry);
}

static void forward(struct client *c, uint8_t type, const uint8_t head[static 4],
		    struct agent_bytes m)
{
	if (!c->a->upstream) {
		tell(c, EGRESS_UNREACHABLE, "the caller's agent is gone");
		answer(c, AGENT_FAILURE);
		return;
	}
	c->waits = true;
	c->type = type;
	evbuffer_add(c->request, head, 4);
	evbuffer_add(c->request, m.data, m.len);
	bufferevent_disable(c->io, EV_READ);
}

/* ---------------------------------------------------------------- requests */

static const struct host_key *find_key(const struct agent *a, struct agent_bytes key)
{
	for (size_t i = 0; i < a->nkeys; i++)
		if (agent_same(key, (struct agent_bytes){a->keys[i].data, a->keys[i].len}))
			return &a->keys[i];
	return NULL;
}

/* NULL: it is bound; else why not. */
static const char *bind_to(struct client *c, const struct agent_bind *b)
{
	const struct host_key *key;

	if (b->forwarding)
		return "the agent may not be forwarded to a server";
	key = find_key(c->a, b->host_key);
	if (!key)
		return "the server's key is not one that known_hosts has for a host of "
		       "network.ssh_agent";
	if (agent_key_verify(b->host_key, b->signature, b->session_id) < 0)
		return "the server's key did not sign this session";
	if (c->bound != BOUND_NOT &&
	    (c->bound == BOUND_BADLY || c->key != key || b->session_id.len != c->session_len ||
	     memcmp(b->session_id.data, c->session_id, c->session_len) != 0))
		return "the connection was bound to another session before";
	c->key = key;
	c->session_len = b->session_id.len;
	memcpy(c->session_id, b->session_id.data, b->session_id.len);
	return NULL;
}

static void on_extension(struct client *c, struct agent_bytes m)
{
	char fingerprint[AGENT_FINGERPRINT];
	struct agent_bind b;
	int r = agent_parse_bind(m, &b);
	const char *why;

	/* Asked for by clients to see what there is: no attempt at anything. */
	if (r == -ENOTSUP) {
		answer(c, AGENT_FAILURE);
		return;
	}
	why = r < 0 ? "a malformed session-bind" : bind_to(c, &b);
	if (!why) {
		c->bound = BOUND_WELL;
		answer(c, AGENT_SUCCESS);
		return;
	}
	c->bound = BOUND_BADLY;
	c->why = why;
	begin_event(c, "bind");
	if (r == 0) {
		agent_key_fingerprint(b.host_key, fingerprint);
		EVENT_TEXT(c->ev.path, fingerprint);
	}
	refuse(c, why);
}

static const char *may_sign(const struct client *c, const struct agent_sign *s,
			    const struct agent_login *login)
{
	if (c->bound == BOUND_NOT)
		return "the client did not say for which session it is: ssh does since OpenSSH 8.9";
	if (c->bound == BOUND_BADLY)
		return c->why;
	if (!login)
		return "what is to be signed is no login";
	if (!agent_same(login->session_id, (struct agent_bytes){c->session_id, c->session_len}))
		return "the login is for another session than the one that was bound";
	if (login->host_key.data &&
	    !agent_same(login->host_key, (struct agent_bytes){c->key->data, c->key->len}))
		return "the login is for another server than the one that was bound";
	(void)s;
	return NULL;
}

static void on_sign(struct client *c, const uint8_t head[static 4], struct agent_bytes m)
{
	char fingerprint[AGENT_FINGERPRINT], user[sizeof(c->ev.sni)] = "";
	struct agent_login login;
	struct agent_sign s;
	bool is_login;
	const char *why;

	begin_event(c, "sign");
	if (agent_parse_sign(m, &s) < 0) {
		refuse(c, "a malformed request");
		return;
	}
	agent_key_fingerprint(s.key, fingerprint);
	EVENT_TEXT(c->ev.path, fingerprint);
	is_login = agent_parse_login(&s, &login) == 0;
	if (is_login && login.user.len < sizeof(user)) {
		memcpy(user, login.user.data, login.user.len);
		EVENT_TEXT(c->ev.sni, user);
	}
	why = may_sign(c, &s, is_login ? &login : NULL);
	if (why)
		refuse(c, why);
	else
		forward(c, AGENT_SIGN_REQUEST, head, m);
}

static void on_message(struct client *c, const uint8_t head[static 4], struct agent_bytes m)
{
	uint8_t type = m.data[0];

	switch (type) {
	case AGENT_REQUEST_IDENTITIES:
		begin_event(c, agent_request_name(type));
		if (m.len == 1)
			forward(c, type, head, m);
		else
			refuse(c, "a malformed request");
		break;
	case AGENT_SIGN_REQUEST: on_sign(c, head, m); break;
	case AGENT_EXTENSION: on_extension(c, m); break;
	default:
		begin_event(c, agent_request_name(type));
		refuse(c, "a box may list keys and sign logins, and nothing else");
	}
}

static void read_client(struct client *c)
{
	struct evbuffer *in = bufferevent_get_input(c->io), *out = bufferevent_get_output(c->io);
	struct agent *a = c->a;
	uint8_t head[4];

	/* Who does not read the answers gets no more of them. */
	while (!c->waits && evbuffer_get_length(out) < AGENT_MESSAGE_MAX &&
	       evbuffer_get_length(in) >= sizeof(head)) {
		const uint8_t *message;
		uint32_t len;

		evbuffer_copyout(in, head, sizeof(head));
		len = agent_length(head);
		if (!len) {
			client_free(c);
			return;
		}
		if (evbuffer_get_length(in) < sizeof(head) + len)
			break;
		evbuffer_drain(in, sizeof(head));
		message = evbuffer_pullup(in, (ev_ssize_t)len);
		if (!message) {
			client_free(c);
			return;
		}
		on_message(c, head, (struct agent_bytes){message, len});
		evbuffer_drain(in, len);
	}
	ask_next(a);
}

/* There is something to read, or all answers are written. */
static void on_read(struct bufferevent *io, void *arg)
{
	(void)io;
	read_client(arg);
}

static void on_end(struct bufferevent *io, short what, void *arg)
{
	(void)io;
	(void)what;
	client_free(arg);
}

static void on_client(int fd, void *arg)
{
	struct agent *a = arg;
	struct client *c = a->nclients < CLIENTS_MAX ? calloc(1, sizeof(*c)) : NULL;

	if (!c) {
		close(fd);
		return;
	}
	c->a = a;
	TAILQ_INSERT_TAIL(&a->clients, c, entry);
	a->nclients++;
	c->request = evbuffer_new();
	c->io = bufferevent_socket_new(a->e->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (!c->io)
		close(fd);
	if (!c->io || !c->request) {
		client_free(c);
		return;
	}
	bufferevent_setwatermark(c->io, EV_READ, 0, 4 + AGENT_MESSAGE_MAX);
	bufferevent_setcb(c->io, on_read, on_read, on_end, c);
	bufferevent_enable(c->io, EV_READ | EV_WRITE);
}

/* ---------------------------------------------------------------- start and end */

int agent_listen(struct agent *a, int listener, int upstream)
{
	a->fd = listener;
	if (fd_set_nonblock(listener, true) < 0 || fd_set_nonblock(upstream, true) < 0) {
		close(upstream);
		return -EIO;
	}
	a->upstream = bufferevent_socket_new(a->e->base, upstream, BEV_OPT_CLOSE_ON_FREE);
	if (!a->upstream) {
		close(upstream);
		return -ENOMEM;
	}
	bufferevent_setwatermark(a->upstream, EV_READ, 0, 4 + AGENT_MESSAGE_MAX);
	bufferevent_setcb(a->upstream, on_answer, NULL, on_upstream, a);
	bufferevent_enable(a->upstream, EV_READ | EV_WRITE);
	a->listener = listener_new(a->e->base, listener, on_client, a);
	return a->listener ? 0 : -ENOMEM;
}

/* "HOST TYPE BASE64"; the type is in the key, too. */
static int add_key(struct agent *a, const char *line, size_t len)
{
	const char *host_end = memchr(line, ' ', len), *type_end;
	struct host_key *k = &a->keys[a->nkeys];
	size_t left;
	int n;

	if (!host_end || a->nkeys == KEYS_MAX || (size_t)(host_end - line) >= sizeof(k->host))
		return -EINVAL;
	left = len - (size_t)(host_end + 1 - line);
	type_end = memchr(host_end + 1, ' ', left);
	if (!type_end)
		return -EINVAL;
	left = len - (size_t)(type_end + 1 - line);
	if (left < 4 || left > KEY_MAX || left % 4)
		return -EINVAL;
	*k = (struct host_key){.data = malloc(left)};
	if (!k->data)
		return -ENOMEM;
	memcpy(k->host, line, (size_t)(host_end - line));
	a->nkeys++;
	n = EVP_DecodeBlock(k->data, (const unsigned char *)type_end + 1, (int)left);
	if (n < 0)
		return -EINVAL;
	/* Padding decodes to zeros. */
	for (size_t i = len; i > 0 && line[i - 1] == '=' && n > 0; i--)
		n--;
	k->len = (size_t)n;
	return 0;
}

int agent_new(struct egress *e, struct agent **ret)
{
	struct agent *a = calloc(1, sizeof(*a));
	const char *text = e->config->known_hosts;
	int r = 0;

	if (!a)
		return -ENOMEM;
	a->e = e;
	a->fd = -1;
	TAILQ_INIT(&a->clients);
	a->keys = calloc(KEYS_MAX, sizeof(*a->keys));
	if (!a->keys)
		r = -ENOMEM;
	while (r == 0 && text && *text) {
		size_t len = strcspn(text, "\n");

		r = add_key(a, text, len);
		text += len + (text[len] == '\n');
	}
	if (r == 0 && a->nkeys)
		r = agent_key_prepare();
	if (r < 0) {
		agent_free(a);
		return r;
	}
	*ret = a;
	return 0;
}

void agent_free(struct agent *a)
{
	if (!a)
		return;
	listener_free(a->listener);
	close_fd(&a->fd);
	while (!TAILQ_EMPTY(&a->clients))
		client_free(TAILQ_FIRST(&a->clients));
	if (a->upstream)
		bufferevent_free(a->upstream);
	for (size_t i = 0; i < a->nkeys; i++)
		free(a->keys[i].data);
	free(a->keys);
	free(a);
}
