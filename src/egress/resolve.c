/* Names to addresses: see resolve.h.
 *
 * Runs in the broker. Hostile: which names are asked for, and how many (the box chooses within the
 * rules), and what the network answers (c-ares parses it). Questions for one name are asked once;
 * the cache is bounded by the least recently used, and in time by the time to live. */
#include "egress/resolve.h"

#include <ares.h>
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/clock.h"
#include "policy/network.h"

#define STAGE	    "egress"
#define BUCKETS	    1024
#define HOSTS_MAX   4096
#define SERVERS_MAX 3 /* as the C library */
#define TIMEOUT_MS  2000
#define TRIES	    2
#define NEGATIVE_S  2
#define SOCKETS_MAX 64

struct lookup {
	TAILQ_ENTRY(lookup) entry;
	struct known *known;
	resolve_cb cb;
	void *arg;
};

/* A name and family: being asked for, or answered. */
struct known {
	TAILQ_ENTRY(known) entry; /* the least recently used first */
	struct known *next;	  /* in the bucket */
	struct resolver *r;
	TAILQ_HEAD(, lookup) waiting;
	bool pending;
	uint64_t until_us;
	struct resolve_result result;
	char host[NETWORK_HOST_MAX + 1];
};

struct host_entry {
	char host[NETWORK_HOST_MAX + 1];
	int family;
	struct in6_addr address;
};

struct watch {
	struct resolver *r;
	int fd; /* -1: free */
	struct event *event;
};

struct resolver {
	struct event_base *base;
	ares_channel channel;
	struct event *timer;
	struct watch watches[SOCKETS_MAX];
	TAILQ_HEAD(, known) all;
	size_t count, pending;
	struct known *buckets[BUCKETS];
	struct host_entry *hosts;
	size_t nhosts;
};

/* ---------------------------------------------------------------- c-ares on the loop */

static void arm_timer(struct resolver *r)
{
	struct timeval tv, *next = ares_timeout(r->channel, NULL, &tv);

	if (next)
		event_add(r->timer, next);
	else
		event_del(r->timer);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct resolver *r = arg;

	(void)fd;
	(void)what;
	ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	arm_timer(r);
}

static void on_socket(evutil_socket_t fd, short what, void *arg)
{
	struct watch *w = arg;
	struct resolver *r = w->r;

	ares_process_fd(r->channel, what & EV_READ ? fd : ARES_SOCKET_BAD,
			what & EV_WRITE ? fd : ARES_SOCKET_BAD);
	arm_timer(r);
}

static void on_state(void *arg, ares_socket_t fd, int readable, int writable)
{
	struct resolver *r = arg;
	struct watch *w = NULL;

	for (size_t i = 0; i < SOCKETS_MAX; i++)
		if (r->watches[i].fd == fd)
			w = &r->watches[i];
	for (size_t i = 0; !w && i < SOCKETS_MAX; i++)
		if (r->watches[i].fd < 0)
			w = &r->watches[i];
	if (!w)
		return; /* the query runs into its time-out */
	if (w->event)
		event_free(w->event);
	w->event = NULL;
	w->fd = -1;
	if (!readable && !writable)
		return;
	w->event = event_new(
		r->base, fd,
		(short)(EV_PERSIST | (readable ? EV_READ : 0) | (writable ? EV_WRITE : 0)),
		on_socket, w);
	if (w->event && event_add(w->event, NULL) == 0)
		w->fd = fd;
}

/* ---------------------------------------------------------------- the two files */

static int add_hosts_line(struct resolver *r, char *line)
{
	char *save = NULL, *word;
	struct host_entry e = {0};

	line[strcspn(line, "#")] = '\0';
	word = strtok_r(line, " \t\r", &save);
	if (!word)
		return 0;
	if (inet_pton(AF_INET, word, &e.address) == 1)
		e.family = AF_INET;
	else if (inet_pton(AF_INET6, word, &e.address) == 1)
		e.family = AF_INET6;
	else
		return 0; /* the C library passes over it, too */
	while ((word = strtok_r(NULL, " \t\r", &save)) && r->nhosts < HOSTS_MAX) {
		struct host_entry *more;

		if (network_host_normalise(word, strlen(word), e.host) < 0)
			continue;
		more = reallocarray(r->hosts, r->nhosts + 1, sizeof(*more));
		if (!more)
			return -ENOMEM;
		r->hosts = more;
		r->hosts[r->nhosts++] = e;
	}
	return 0;
}

struct settings {
	struct buf servers; /* as ares_set_servers_csv() takes it */
	size_t nservers;
	int flags;
	bool rotate;
	int timeout_ms, tries;
};

static int bounded(const char *text, int low, int high)
{
	long v = strtol(text, NULL, 10);

	return v < low ? low : v > high ? high : (int)v;
}

static void read_resolv_line(struct settings *s, char *line)
{
	char *save = NULL, *word = strtok_r(line, " \t\r", &save);

	if (!word)
		return;
	if (strcmp(word, "nameserver") == 0 && s->nservers < SERVERS_MAX) {
		struct in6_addr address;

		word = strtok_r(NULL, " \t\r", &save);
		if (!word)
			return;
		if (inet_pton(AF_INET, word, &address) == 1)
			buf_addf(&s->servers, "%s%s", s->nservers++ ? "," : "", word);
		else if (inet_pton(AF_INET6, word, &address) == 1)
			buf_addf(&s->servers, "%s[%s]", s->nservers++ ? "," : "", word);
		/* One with a zone (fe80::1%eth0) is passed over: c-ares has no way to say it. */
	} else if (strcmp(word, "options") == 0) {
		while ((word = strtok_r(NULL, " \t\r", &save))) {
			if (strcmp(word, "rotate") == 0)
				s->rotate = true;
			else if (strcmp(word, "use-vc") == 0)
				s->flags |= ARES_FLAG_USEVC;
			else if (strncmp(word, "timeout:", 8) == 0)
				s->timeout_ms = 1000 * bounded(word + 8, 1, 30);
			else if (strncmp(word, "attempts:", 9) == 0)
				s->tries = bounded(word + 9, 1, 5);
		}
	}
}

static int each_line(const char *text, void (*fn)(void *arg, char *line), void *arg)
{
	char *copy = strdup(text), *save = NULL;

	if (!copy)
		return -ENOMEM;
	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		fn(arg, line);
	free(copy);
	return 0;
}

static void on_resolv_line(void *arg, char *line)
{
	read_resolv_line(arg, line);
}

static void on_hosts_line(void *arg, char *line)
{
	(void)!add_hosts_line(arg, line);
}

static int start_ares(struct resolver *r, const char *resolv_conf, struct pale_err *err)
{
	static char lookups[] = "b", nothing[] = "/dev/null";
	char *no_domains[1] = {NULL};
	struct settings s = {
		.servers = BUF_INIT(1024),
		.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES | ARES_FLAG_STAYOPEN,
		.timeout_ms = TIMEOUT_MS,
		.tries = TRIES,
	};
	struct ares_options o = {
		.ndots = 0,
		.domains = no_domains,
		.ndomains = 0,
		.lookups = lookups,
		.sock_state_cb = on_state,
		.sock_state_cb_data = r,
		.resolvconf_path = nothing,
	};
	int status;

	if (each_line(resolv_conf, on_resolv_line, &s) < 0)
		return err_nomem(err, STAGE);
	o.flags = s.flags;
	o.timeout = s.timeout_ms;
	o.tries = s.tries;
	status = ares_init_options(&r->channel, &o,
				   ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
					   ARES_OPT_NDOTS | ARES_OPT_DOMAINS | ARES_OPT_LOOKUPS |
					   ARES_OPT_SOCK_STATE_CB | ARES_OPT_RESOLVCONF |
					   (s.rotate ? ARES_OPT_ROTATE : ARES_OPT_NOROTATE));
	if (status == ARES_SUCCESS && s.nservers)
		status = ares_set_servers_csv(r->channel, s.servers.data);
	buf_done(&s.servers);
	if (status != ARES_SUCCESS)
		return err_set(err, PALE_E_SYSTEM, STAGE, 0, "cannot start the resolver: %s",
			       ares_strerror(status));
	return 0;
}

int resolver_new(struct event_base *base, const char *resolv_conf, const char *hosts,
		 struct resolver **ret, struct pale_err *err)
{
	struct resolver *r = calloc(1, sizeof(*r));

	if (!r)
		return err_nomem(err, STAGE);
	r->base = base;
	TAILQ_INIT(&r->all);
	for (size_t i = 0; i < SOCKETS_MAX; i++)
		r->watches[i] = (struct watch){.r = r, .fd = -1};
	r->timer = event_new(base, -1, 0, on_timer, r);
	if (!r->timer || each_line(hosts, on_hosts_line, r) < 0) {
		resolver_free(r);
		return err_nomem(err, STAGE);
	}
	if (start_ares(r, resolv_conf, err) < 0) {
		resolver_free(r);
		return -(int)err->code;
	}
	*ret = r;
	return 0;
}

void resolver_free(struct resolver *r)
{
	struct known *k;

	if (!r)
		return;
	TAILQ_FOREACH(k, &r->all, entry)
	while (!TAILQ_EMPTY(&k->waiting))
		resolve_cancel(TAILQ_FIRST(&k->waiting));
	if (r->channel)
		ares_destroy(r->channel); /* calls back for what is pending */
	while ((k = TAILQ_FIRST(&r->all))) {
		TAILQ_REMOVE(&r->all, k, entry);
		free(k);
	}
	for (size_t i = 0; i < SOCKETS_MAX; i++)
		if (r->watches[i].event)
			event_free(r->watches[i].event);
	if (r->timer)
		event_free(r->timer);
	free(r->hosts);
	free(r);
}

/* ---------------------------------------------------------------- the cache */

static unsigned bucket_of(const char *host, int family)
{
	uint32_t h = 2166136261u ^ (uint32_t)family;

	for (; *host; host++)
		h = (h ^ (unsigned char)*host) * 16777619u;
	return h % BUCKETS;
}

static void known_drop(struct resolver *r, struct known *k)
{
	struct known **p = &r->buckets[bucket_of(k->host, k->result.family)];

	while (*p != k)
		p = &(*p)->next;
	*p = k->next;
	TAILQ_REMOVE(&r->all, k, entry);
	r->count--;
	free(k);
}

static struct known *known_find(struct resolver *r, const char *host, int family)
{
	struct known *k = r->buckets[bucket_of(host, family)];

	while (k && (k->result.family != family || strcmp(k->host, host) != 0))
		k = k->next;
	if (k && !k->pending && clock_mono_us() >= k->until_us) {
		known_drop(r, k);
		return NULL;
	}
	return k;
}

static struct known *known_new(struct resolver *r, const char *host, int family)
{
	unsigned bucket = bucket_of(host, family);
	struct known *k, *old;

	if (r->count >= RESOLVE_CACHE_MAX)
		TAILQ_FOREACH(old, &r->all, entry)
	if (!old->pending) {
		known_drop(r, old);
		break;
	}
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	k->r = r;
	k->result.family = family;
	memcpy(k->host, host, strlen(host) + 1);
	TAILQ_INIT(&k->waiting);
	k->next = r->buckets[bucket];
	r->buckets[bucket] = k;
	TAILQ_INSERT_TAIL(&r->all, k, entry);
	r->count++;
	return k;
}

static const char *problem_of(int status)
{
	switch (status) {
	case ARES_ENOTFOUND: return "the name does not exist";
	case ARES_ENODATA: return "the name has no address";
	case ARES_ETIMEOUT: return "the resolver does not answer";
	/* Also where each of them answers with an error: c-ares asks the next then, and forgets. */
	case ARES_ECONNREFUSED: return "no resolver can be reached, or all answer with an error";
	case ARES_ESERVFAIL: return "the resolver failed (SERVFAIL)";
	case ARES_EREFUSED: return "the resolver refused";
	default: return "the name cannot be resolved";
	}
}

static void take_addresses(struct known *k, const struct ares_addrinfo *info)
{
	struct resolve_result *to = &k->result;
	int ttl_s = RESOLVE_TTL_MAX_S;

	for (const struct ares_addrinfo_node *n = info->nodes; n; n = n->ai_next) {
		if (n->ai_family != to->family || to->n == RESOLVE_ADDRESSES_MAX)
			continue;
		if (n->ai_family == AF_INET)
			memcpy(&to->address[to->n++],
			       &((const struct sockaddr_in *)(const void *)n->ai_addr)->sin_addr,
			       sizeof(struct in_addr));
		else
			to->address[to->n++] =
				((const struct sockaddr_in6 *)(const void *)n->ai_addr)->sin6_addr;
		if (n->ai_ttl < ttl_s)
			ttl_s = n->ai_ttl;
	}
	k->until_us = clock_mono_us() + (uint64_t)(ttl_s < 0 ? 0 : ttl_s) * 1000000;
}

static void on_answer(void *arg, int status, int timeouts, struct ares_addrinfo *info)
{
	struct known *k = arg;

	(void)timeouts;
	k->pending = false;
	k->r->pending--;
	if (status == ARES_SUCCESS && info)
		take_addresses(k, info);
	if (info)
		ares_freeaddrinfo(info);
	if (k->result.n == 0) {
		k->result.problem = problem_of(status == ARES_SUCCESS ? ARES_ENODATA : status);
		k->until_us = clock_mono_us() + NEGATIVE_S * 1000000ull;
	}
	/* A callback may ask for another name, and so make room in the cache, but not by this one:
	 * it counts as pending until all have been told. */
	struct resolve_result result = k->result;

	k->pending = true;
	while (!TAILQ_EMPTY(&k->waiting)) {
		struct lookup *l = TAILQ_FIRST(&k->waiting);
		resolve_cb cb = l->cb;
		void *cb_arg = l->arg;

		TAILQ_REMOVE(&k->waiting, l, entry);
		free(l);
		cb(&result, cb_arg);
	}
	k->pending = false;
}

static bool from_hosts(struct resolver *r, const char *host, int family, struct resolve_result *ret)
{
	bool named = false;

	*ret = (struct resolve_result){.family = family,
				       .problem = "the name has no address of this family"};
	for (size_t i = 0; i < r->nhosts; i++) {
		if (strcmp(r->hosts[i].host, host) != 0)
			continue;
		named = true;
		if (r->hosts[i].family == family && ret->n < RESOLVE_ADDRESSES_MAX)
			ret->address[ret->n++] = r->hosts[i].address;
	}
	return named;
}

int resolve_start(struct resolver *r, const char *host, int family, resolve_cb cb, void *arg,
		  struct lookup **ret)
{
	const struct ares_addrinfo_hints hints = {
		.ai_family = family, .ai_flags = ARES_AI_NOSORT, .ai_socktype = SOCK_STREAM};
	struct resolve_result result;
	struct lookup *l;
	struct known *k;
	bool fresh = false;

	*ret = NULL;
	if (from_hosts(r, host, family, &result)) {
		cb(&result, arg);
		return 0;
	}
	k = known_find(r, host, family);
	if (k && !k->pending) {
		TAILQ_REMOVE(&r->all, k, entry);
		TAILQ_INSERT_TAIL(&r->all, k, entry);
		result = k->result;
		cb(&result, arg);
		return 0;
	}
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	if (!k) {
		if (r->pending >= RESOLVE_PENDING_MAX) {
			free(l);
			return -EBUSY;
		}
		k = known_new(r, host, family);
		if (!k) {
			free(l);
			return -ENOMEM;
		}
		k->pending = true;
		r->pending++;
		fresh = true;
	}
	*l = (struct lookup){.known = k, .cb = cb, .arg = arg};
	TAILQ_INSERT_TAIL(&k->waiting, l, entry);
	*ret = l;
	if (fresh) {
		/* It may call back at once (no server), and *ret is freed then. */
		ares_getaddrinfo(r->channel, host, NULL, &hints, on_answer, k);
		if (!k->pending)
			*ret = NULL;
		arm_timer(r);
	}
	return 0;
}

void resolve_cancel(struct lookup *l)
{
	if (!l)
		return;
	TAILQ_REMOVE(&l->known->waiting, l, entry);
	free(l);
}
