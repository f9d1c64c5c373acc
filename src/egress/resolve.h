/* Names to addresses, as the host knows them.
 *
 * By c-ares and not libevent's evdns: it gives the time to live of each address, follows CNAMEs,
 * falls back to TCP, asks several servers, and draws its ids well; nor the C library's resolver,
 * which blocks, and opens files and loads code whenever it is called, which a locked-in process
 * can't. The servers are those of resolv.conf's text, entries of the hosts file come first, and
 * search domains are not applied: a rule names a whole name. */
#pragma once

#include <event2/event.h>
#include <netinet/in.h>

#include "base/err.h"

#define RESOLVE_ADDRESSES_MAX 16
#define RESOLVE_CACHE_MAX     1024 /* names and families; older ones make room */
#define RESOLVE_PENDING_MAX   256
#define RESOLVE_TTL_MAX_S     300

struct resolver;
struct lookup;

struct resolve_result {
	int family; /* AF_INET or AF_INET6 */
	size_t n;
	struct in6_addr address[RESOLVE_ADDRESSES_MAX]; /* AF_INET: in the first four bytes */
	const char *problem; /* if n is 0: "the name does not exist"; static */
};
typedef void (*resolve_cb)(const struct resolve_result *r, void *arg);

/* Before the broker locks itself in. */
int resolver_new(struct event_base *base, const char *resolv_conf, const char *hosts,
		 struct resolver **ret, struct pale_err *err) _must_check_;
void resolver_free(struct resolver *r);

/* Asks for one family. The callback comes once; maybe before this returns, and *ret is then NULL.
 * -ENOMEM; -EBUSY: too many names are being looked up. */
int resolve_start(struct resolver *r, const char *host, int family, resolve_cb cb, void *arg,
		  struct lookup **ret) _must_check_;
void resolve_cancel(struct lookup *l); /* NULL is nothing */
