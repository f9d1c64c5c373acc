/* Published ports, between the broker, which has the listeners, and the box's first process, which
 * makes the connections in there. */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "init/protocol.h"

struct run;
struct inbound; /* opaque */

/* Opens the listeners. Nothing for a plan without published ports. While the box's sockets are
 * still here (before broker_connect()): by them its network is known again. */
int inbound_open(struct run *run, struct pale_err *err) _must_check_;
/* Gives them to the broker, and says in the log where they are. After broker_ready(). */
int inbound_hand_over(struct run *run, struct pale_err *err) _must_check_;
/* Removes what of them is on the host. */
void inbound_free(struct inbound *in);

/* The broker wants a connection to network.publish[index], under this id: both hostile. */
void inbound_wanted(struct run *run, uint32_t id, uint32_t index);

/* The next message of the box's first process, with what recv() gives, and the descriptor that came
 * with it, or -1: only if there are published ports. */
ssize_t inbound_hear(struct run *run, struct init_message *ret, int *ret_fd);
/* INIT_CONNECTED; takes fd. Both are hostile. */
void inbound_made(struct run *run, const struct init_message *m, int fd);
