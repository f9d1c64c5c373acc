/* What the supervisor and the first process of a box say to each other, one message a packet on a
 * SOCK_SEQPACKET pair. What comes out of a box is hostile: init itself is ours, but whoever breaks
 * it speaks here, so every field is checked by the supervisor. */
#pragma once

#include <stdint.h>

enum init_kind {
	/* supervisor to init */
	INIT_GO = 1,	 /* run the command now; value: 1: stay after INIT_EXIT, until killed or the
			    supervisor is gone: what counts for the box goes away with its last process
			  */
	INIT_SIGNAL = 2, /* value: a signal for the command's process group */
	/* init to supervisor */
	INIT_READY = 3,	      /* at the gate */
	INIT_EXEC_FAILED = 4, /* value: errno of the exec */
	INIT_EXIT = 5,	 /* the main process ended: value is its wait status, and everything else is
			    dead */
	INIT_LOOKUP = 6, /* a name was asked for: text */
	/* supervisor to init */
	/* value: SIGSTOP or SIGCONT, for everything but init; type 1: who stood already stays so
	 * when the others go on, for which init opens files, so that the supervisor must be there.
	 */
	INIT_PAUSE = 7,
	/* Connect to the port `value` of the box's loopback; id: of the request. */
	INIT_CONNECT = 8,
	/* init to supervisor */
	INIT_CONNECTED = 9, /* value: 0, with the socket, connected or about to be; or an errno.
			       id: of the request. Descriptors go this way only. */
	/* supervisor to init */
	INIT_KILL = 10, /* value: a signal for the process `id`, as numbered in the box; type 1: and
			   for the group that it leads */
	/* init to supervisor */
	INIT_KILLED = 11, /* it was sent, if there was such a process */
	/* supervisor to init, of a box whose command init does not start (a zygote's fork, whose
	   parent is outside): */
	INIT_ADOPTED = 12, /* it is the process `id`, as numbered in the box */
	INIT_END = 13,	   /* it has ended: value is its wait status */
};

#define INIT_KERNEL_FD 3

struct init_message {
	uint32_t kind;
	int32_t value;
	uint32_t leftover;    /* INIT_EXIT: processes that were still alive and were killed */
	uint32_t type;	      /* INIT_LOOKUP: query type */
	uint32_t id;	      /* INIT_CONNECT, INIT_CONNECTED */
	uint64_t cpu_us;      /* INIT_EXIT: of all processes that ended */
	uint64_t max_rss_kib; /* INIT_EXIT: of the largest one */
	uint32_t text_len;
	char text[256];
};

/* How the set-up hands over to init: argv[1] of init is one string of these in decimal, separated
 * by commas: control descriptor, DNS descriptor or -1, the seccomp listener (to be closed when the
 * gate opens: the supervisor has it then) or -1, 1 if the standard streams are a terminal, the
 * kernel channel, which the command has as INIT_KERNEL_FD, or -1, what is executed instead of the
 * path or -1. argv[2] is the path of the command's program, and from argv[3] on stands the
 * command's own argv. Without argv[2] it starts none, and lasts until INIT_END or until nobody
 * holds the other end of the control socket any more.
 */
