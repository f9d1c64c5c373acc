/* What the supervisor and the egress broker say to each other: one message a packet on a
 * SOCK_SEQPACKET pair. The broker reads hostile bytes, so the supervisor checks every field of what
 * comes from it; strings are NUL-terminated within their arrays and any byte can be in them. */
#pragma once

#include <stdint.h>

#include "confine/nft.h"
#include "policy/network.h"

/* The descriptors made in the box's network namespace, in this order; EGRESS_SOCKETS carries them
 * all.
 */
enum egress_socket {
	EGRESS_TCP4, /* listening; every TCP connection of the box that is not for loopback */
	EGRESS_TCP6,
	EGRESS_PROXY,	 /* listening on EGRESS_PROXY_PORT of loopback: HTTP CONNECT, HTTP, SOCKS */
	EGRESS_DNS_UDP4, /* port 53 of every address, IP_PKTINFO */
	EGRESS_DNS_UDP6,
	EGRESS_DNS_TCP4,
	EGRESS_DNS_TCP6,
	EGRESS_DIAG, /* NETLINK_SOCK_DIAG of the box's namespace: whose a connection is */
	EGRESS_UDP,  /* from here on: unbound UDP sockets, EGRESS_UDP4S for IPv4, then as many for
		       IPv6 */
};
#define EGRESS_UDPS	  16 /* of each family */
#define EGRESS_NSOCKETS	  (EGRESS_UDP + 2 * EGRESS_UDPS)
#define EGRESS_PROXY_PORT NETWORK_PROXY_PORT
#define EGRESS_TCP_PORT	  NFT_PORT /* outside of the ephemeral range */
_Static_assert(NFT_PORT == NETWORK_TCP_PORT && NFT_DNS_PORT == NETWORK_DNS_PORT &&
		       __builtin_strcmp(NFT_OWN4, NETWORK_OWN4) == 0 &&
		       __builtin_strcmp(NFT_OWN6, NETWORK_OWN6) == 0,
	       "policy/network.h");

/* Inside: the box's own address, and one for each name that is allowed. */
#define EGRESS_OWN4	  NFT_OWN4
#define EGRESS_OWN6	  NFT_OWN6
#define EGRESS_SYNTHETIC4 NETWORK_SYNTHETIC4 /* /16 */
#define EGRESS_SYNTHETIC6 NETWORK_SYNTHETIC6 /* /112 */

/* How TCP comes to the broker. */
enum egress_mode {
	EGRESS_TPROXY = 1, /* the destination is the accepted socket's own name */
	EGRESS_REDIRECT,   /* it is SO_ORIGINAL_DST */
};

enum egress_kind {
	/* supervisor to broker */
	EGRESS_CONFIG = 1, /* with a sealed memfd: JSON, struct egress_config in docs of config.c;
			      secrets included. First, once. */
	EGRESS_SOCKETS,	   /* with EGRESS_NSOCKETS descriptors */
	EGRESS_RULES,	   /* with a sealed memfd: the policy's network part anew */
	EGRESS_STOP,	   /* finish: send the last events, then exit */
	EGRESS_PUBLISH,	   /* value: an index in network.publish; with its listeners, at most
			      EGRESS_LISTENERS */
	EGRESS_AGENT,	   /* with the listener of the box's SSH_AUTH_SOCK, and a connection to the
			      caller's agent */
	EGRESS_CONNECTED, /* value: the id of an EGRESS_CONNECT; with the socket, connected or about
			     to be, or connect.error */
	/* broker to supervisor */
	EGRESS_CA,     /* text: the box's CA certificate, PEM; before EGRESS_READY if anything
			  intercepts */
	EGRESS_TAKEN,  /* EGRESS_RULES were taken over: what follows names rules of the new ones */
	EGRESS_READY,  /* confined, rules loaded; after EGRESS_RULES: what they do not allow any
			  more has been ended */
	EGRESS_FAILED, /* text: why it can't work; it exits */
	EGRESS_EVENT,
	EGRESS_CONNECT, /* value: an id; connect.index: in network.publish: a connection to that
			   port in the box is wanted */
};
#define EGRESS_LISTENERS 2

enum egress_outcome {
	EGRESS_ALLOWED = 1, /* it was connected (or answered), and has ended now */
	EGRESS_OPENED,	    /* it was connected and goes on: told once, for connections over 10 s */
	EGRESS_BLOCKED,	    /* by the policy */
	EGRESS_UNREACHABLE, /* allowed, but the network did not: errno or DNS failure in detail */
	EGRESS_EXFILTRATION, /* a secret's placeholder was sent where it does not belong: blocked */
};

enum egress_what {
	EGRESS_LOOKUP = 1, /* a name was asked for; port 0 */
	EGRESS_CONNECTION,
	EGRESS_REQUEST,	  /* one HTTP request of a connection that is looked into */
	EGRESS_INBOUND,	  /* a published port: `port` is the box's, `sni` says who of the host
			     connected, bytes_out are those of the box */
	EGRESS_AGENT_USE, /* something asked of the caller's ssh agent: `method` is what ("sign"),
			     `host` the one that the client is connected to, `sni` the user it logs
			     in as, `path` the fingerprint of the key */
};

/* EGRESS_EVENT. */
struct egress_event {
	uint32_t outcome;	    /* enum egress_outcome */
	uint32_t what;		    /* enum egress_what */
	uint64_t count;		    /* 1, or how many alike were not told singly */
	int32_t rule;		    /* index in the rules, or -1 */
	uint16_t port, source_port; /* source_port: the client's, in the box; 0: not known */
	uint8_t protocol;	    /* enum network_protocol's bit, 0: not known */
	uint8_t family;		    /* of source_port's socket: 4 or 6 */
	uint32_t client;	    /* inode of the client's socket in the box (client.h): by it the
				       supervisor knows the program; 0: not known */
	uint8_t unfit;		    /* 1: blocked for `address` alone, where the host leads, or that
				       a rule has only among others */
	uint8_t cut;		    /* 1: it was open when the box ended */
	uint16_t status;	    /* EGRESS_REQUEST: of the answer; 0: none */
	uint16_t query;		    /* EGRESS_LOOKUP: the type of record that was asked for */
	uint64_t bytes_out, bytes_in;
	uint64_t duration_us;
	char host[254];	  /* the name, or empty */
	char address[46]; /* the one dialled, or asked for; or empty */
	char sni[254];
	char method[24];
	char path[512];	  /* values of secrets masked; cut at the end */
	char detail[160]; /* "certificate has expired", "ECONNREFUSED", "SNI is not the name" */
};

struct egress_message {
	uint32_t kind;
	uint32_t value;
	union {
		struct egress_event event;
		char text[2048];
		struct {
			uint32_t index;
			int32_t error; /* an errno */
		} connect;
	};
};
