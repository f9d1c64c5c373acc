/* A flow: one connection of the box, from the door it came in by to its one event at the end.
 *
 * accept.c, proxy.c and udp.c make flows; relay.c or the HTTP engine carries them. The flow is
 * owned by the one who carries it, and freed by flow_end() alone. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "egress/egress.h"

#define FLOW_MAX 4096 /* whatever the policy says */

/* How it came. */
enum flow_door {
	FLOW_TRANSPARENT,
	FLOW_CONNECT, /* HTTP CONNECT; already answered with 200 */
	FLOW_SOCKS,   /* likewise */
	FLOW_FORWARD, /* the proxy port, absolute-form requests */
	FLOW_UDP,
	FLOW_INBOUND, /* a published port: the client is the host's, upstream the box's */
};

struct flow;

struct flow_carrier {
	/* Let go of everything of the flow but the client's descriptor; the caller ends the flow.
	 */
	void (*drop)(struct flow *f);
	/* The rules have changed (config->network is the new one; rule indices too). true: the flow
	 * may go on, and f->rule is set anew. NULL: flow_covered() decides. */
	bool (*covered)(struct flow *f);
};

struct flow {
	TAILQ_ENTRY(flow) entry;
	struct egress *e;
	int client;   /* non-blocking, owned unless -1 */
	int upstream; /* already connected to where the flow goes; or -1. relay.c takes it */
	enum flow_door door;
	char host[NETWORK_HOST_MAX + 1]; /* normalised; or empty: */
	int family;			 /* of a literal address; 0 with a host */
	struct in6_addr address;	 /* AF_INET: in the first four bytes */
	uint16_t port, source_port;
	uint8_t source_family; /* 4 or 6 */
	uint32_t client_inode; /* client.h; 0: not known */
	enum network_protocol protocol;
	int rule;			/* that allows it, or -1 */
	char sni[NETWORK_HOST_MAX + 1]; /* FLOW_INBOUND: who connected */
	char dialled[46];		/* the address, as text; empty until connected */
	char unfit[46];			/* the one for which alone it could not be dialled */
	char method[24], path[512];	/* for the event of a request that was refused */
	uint64_t bytes_out, bytes_in;
	uint64_t started_us; /* clock_mono_us() */
	bool opened_told;
	bool quiet; /* tells no event of its own: its requests tell all, or it never said what it is
		     */
	const struct flow_carrier *carrier; /* NULL: nobody yet */
	void *carried;			    /* the carrier's */
	struct synthetic_name *name;	    /* held while the flow lives; or NULL */
};

/* NULL: no memory, or at the policy's `connections` or FLOW_MAX; nothing is told then, and the
 * descriptor stays the caller's. */
struct flow *flow_new(struct egress *e, int client, enum flow_door door);
/* Tells the flow's one event (with EGRESS_OPENED before it for long ones), closes the client and
 * frees. */
void flow_end(struct flow *f, enum egress_outcome outcome, const char *detail);

/* Asks the rules. flow_covered(): with f->protocol; sets f->rule. */
bool flow_covered(struct flow *f);
struct network_answer flow_ask(const struct flow *f, enum network_protocol protocol);

/* Do the rules allow anything over TCP to where it goes? *ret: the answer that does, or the last
 * that names a rule. */
bool flow_any_allowed(const struct flow *f, struct network_answer *ret);

/* Tells EGRESS_BLOCKED by this rule and resets the connection. inspect.h has the refusals in
 * words. */
void flow_refuse(struct flow *f, int rule, const char *detail);

/* To be called after bytes were moved, either way. 0, or -EDQUOT: a cap of the rule (f->rule) or of
 * the box on all bytes is reached; the caller ends the flow with what flow_quota_detail() says. */
int flow_account(struct flow *f, uint64_t out, uint64_t in) _must_check_;
const char *flow_quota_detail(const struct flow *f);
/* Was it reached before, by other flows? */
bool flow_quota_reached(const struct flow *f);
/* How long to leave off reading, so that the rates are kept; 0: go on. Ask after flow_account(). */
uint64_t flow_pause_us(const struct flow *f);

/* A connection to the other side: resolves (fresh, or within the time to live), checks each
 * address, races them (happy eyeballs). The callback comes once, from the loop, never from within
 * flow_dial(): fd (non-blocking, TCP_NODELAY, the callee's) with the address as text, or -1 with
 * an outcome (EGRESS_UNREACHABLE or EGRESS_BLOCKED) and a detail; the address is then the one for
 * which alone it is blocked, or empty.
 *
 * host (normalised) or, with host NULL, the address. The caller has asked the rules: rule is the
 * one that allows it. */
struct dial;
struct dial_result {
	int fd;
	char address[46];
	enum egress_outcome outcome;
	char detail[160];
};
struct dial_target {
	const char *host;
	int family;
	const void *address;
	uint16_t port;
	int rule;
	enum network_protocol protocol; /* NETWORK_UDP: a connected UDP socket, of which
					   nothing tells whether anybody is there */
};
typedef void (*dial_cb)(const struct dial_result *r, void *arg);
struct dial *dial_start(struct egress *e, const struct dial_target *to, dial_cb cb,
			void *arg); /* NULL: no memory, or too many at a time */
void dial_cancel(struct dial *d);   /* no callback comes any more; NULL is nothing */
/* Keeps what a dial came to. */
static inline void flow_dialled(struct flow *f, const struct dial_result *d)
{
	EVENT_TEXT(f->dialled, d->fd >= 0 ? d->address : "");
	EVENT_TEXT(f->unfit, d->fd >= 0 ? "" : d->address);
}
/* To where the flow goes. */
struct dial *flow_dial(struct flow *f, dial_cb cb, void *arg);

int flows_new(struct egress *e, struct flows **ret) _must_check_;
void flows_free(struct flows *v);
/* After EGRESS_RULES: ends what is not covered any more. */
void flows_recheck(struct egress *e);
/* Ends all. */
void flows_stop(struct egress *e);
