/* The supervisor's side of the seccomp listener: what the box's processes tried, and the answers.
 *
 * Every call that the filter refuses or reports stops until it is answered here. Refused calls get
 * the errno of the table; reported ones go on: files and network are held by mounts, Landlock and
 * the network namespace, which is empty or ends in the egress broker, never by what is read here,
 * because a process can change its memory after it has been looked at. The one exception is a
 * courtesy: with network rules, an address that no rule covers is refused at once (EACCES, as by a
 * firewall), where the broker would refuse it later. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "confine/seccomp.h"
#include "policy/network.h"

enum notify_kind {
	NOTIFY_CALL,	/* a refused system call */
	NOTIFY_NETWORK, /* a destination other than loopback and Unix sockets */
	NOTIFY_FILE, /* an access that will fail, because the box does not have or allow the path */
	NOTIFY_KINDS,
};

enum notify_op {
	NOTIFY_OP_NONE,
	NOTIFY_OP_CONNECT, /* a stream connection */
	NOTIFY_OP_SEND,	   /* a message with an address */
	NOTIFY_OP_PROBE,   /* a peer for a datagram socket: nothing is sent by that; the C library
			    * does   it to choose among the addresses of a name */
	NOTIFY_OP_READ,	   /* files: */
	NOTIFY_OP_WRITE,
	NOTIFY_OP_CREATE,
	NOTIFY_OP_REMOVE,
	NOTIFY_OP_CHANGE, /* mode, owner, times, size */
	NOTIFY_OP_EXEC,
};
const char *notify_op_name(enum notify_op op); /* "connect"; "" for none */

#define NOTIFY_PATH_SIZE 1024 /* longer paths are cut */

/* One event. All strings are NUL-terminated and come from the box but for call, detail and
 * protocol: any byte can be in them (audit_text()). Valid during the sink's call only. */
struct notify_event {
	enum notify_kind kind;
	enum notify_op op;
	uint64_t count; /* 1; in a total, the events since the last one told singly or in a total */
	uint64_t total; /* all so far that are alike: kind, call or destination or path, program */
	bool is_total;	/* from notify_flush() */
	bool is_overflow; /* a total over events of this kind that were too various to keep apart:
			   * call, program, destination and path are empty */
	char call[32];	  /* "keyctl", "x32:write", "i386:102", "512" */
	char detail[48];  /* of a refused call, where the arguments tell: "AF_ALG", "TIOCSTI" */
	int error;	  /* what the call fails with; 0: not known here, it goes on */
	pid_t pid;	  /* of the thread, as the supervisor sees it; 0 in totals */
	char comm[16];	  /* what the process calls itself */
	char exe[256];	  /* its program, as a path in the box; empty if unknown */
	char address[64]; /* "192.0.2.1", "2001:db8::1"; "family 17" for others */
	uint16_t port;
	const char *protocol; /* "tcp", "udp", "icmp"; "" if unknown */
	char path[NOTIFY_PATH_SIZE];
};

/* Called within notify_handle() and notify_flush(). Must not call notify_*(). */
typedef void notify_sink(void *arg, const struct notify_event *event);

/* A process is about to write to its descriptor 1 or 2: drain what came before now. Must not block.
 */
typedef void notify_output(void *arg, pid_t pid);

struct notify_config {
	int listener; /* handed over; closed by notify_free(), and on failure of notify_new() */
	enum policy_profile profile; /* the same as the filter was installed with */
	unsigned watch;
	int root; /* O_PATH descriptor of the box's root, to resolve paths in; borrowed; -1: that of
		   * the process in question */
	const struct policy_network *network; /* the rules, borrowed; NULL: there are none */
	uint64_t memory_bytes;		      /* what sysinfo() tells; 0: what the kernel says */
	unsigned singly; /* events that are alike are told singly up to this many; 0: 20 */
	notify_sink *sink;
	notify_output *on_output_write; /* may be NULL */
	void *arg;
};

struct notify;

int notify_new(const struct notify_config *config, struct notify **ret,
	       struct pale_err *err) _must_check_;
void notify_free(struct notify *n);

/* Other rules, borrowed, in place of those that it was made with. */
void notify_set_network(struct notify *n, const struct policy_network *network);

/* Borrowed; polls readable when a call waits. */
int notify_fd(const struct notify *n);

/* Answers what waits, at most 64 calls, never blocks. 0; -EPIPE: the box has ended, or nothing in
 * it has the filter any more: stop polling; another negative errno: the listener is broken, end the
 * box. Also right to call when nothing waits. */
int notify_handle(struct notify *n) _must_check_;

/* Tells the totals of what has not been told: call it every few seconds, and at the end. */
void notify_flush(struct notify *n);

/* The program that last turned to port 53 of loopback, where the box's first process answers name
 * lookups: hostile bytes, NUL-terminated; "" if there was none. */
const char *notify_last_resolver(const struct notify *n);

/* With network rules: the program that connected with the socket of this inode (struct
 * egress_event); likewise hostile. "" if that is not known, or long ago. */
const char *notify_client(const struct notify *n, uint32_t inode);

/* How many calls were answered so far. */
uint64_t notify_answered(const struct notify *n);
