/* The broker's own state: one of it a process. Passed around instead of globals, so that tests can
 * make parts of it. */
#pragma once

#include <event2/event.h>

#include "egress/config.h"
#include "egress/event.h"

struct egress {
	struct event_base *base;
	struct config *config;
	unsigned changes;	      /* of the rules: what keeps a rule's index asks anew */
	bool stopping;		      /* the box has ended: nothing new is dialled */
	bool cutting;		      /* and what is open still is ended now */
	uint64_t activity;	      /* of the box's: flows that came, events that were told */
	int control;		      /* to the supervisor; SOCK_SEQPACKET */
	int sockets[EGRESS_NSOCKETS]; /* -1: closed, or taken */
	int route;		      /* route.h */
	struct events *events;	      /* event.h */
	struct synthetic *synthetic;  /* synthetic.h */
	struct resolver *resolver;    /* resolve.h */
	struct caps *caps;	      /* cap.h */
	struct flows *flows;	      /* flow.h */
	struct dns *dns;	      /* dns.h */
	struct accept *accept;	      /* accept.h */
	struct proxy *proxy;	      /* proxy.h */
	struct udp *udp;	      /* udp.h */
	struct http *http;	      /* http/http.h */
	struct inbound *inbound;      /* inbound.h */
	struct agent *agent;	      /* agent.h */
};
