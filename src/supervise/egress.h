/* The egress broker of a box (src/egress/main.c), as its supervisor holds it.
 *
 * Order: broker_start() and broker_configure() before the box is cloned, broker_connect() when the
 * box's sockets are here, broker_ready() before the gate opens. From then on broker_fd() is
 * watched; broker_finish() when the box is dead. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "egress/wire.h"
#include "isolation/isolation.h"
#include "plan/plan.h"

struct broker; /* opaque */

/* Starts the program, which then waits. PALE_E_HOST: it is not installed. */
int broker_start(const struct plan *plan, struct broker **ret, struct pale_err *err) _must_check_;
/* What the box has in place of each secret; NULL if there are none. */
const char *const *broker_placeholders(const struct broker *b);
/* Tells it the rules, and the values of secrets, which are read here. own_process: see
 * secrets_write(). */
int broker_configure(struct broker *b, bool own_process, struct pale_err *err) _must_check_;
/* Gives it the box's sockets; box has none of them afterwards. */
int broker_connect(struct broker *b, struct box *box, struct pale_err *err) _must_check_;
/* Waits until it has locked itself in and listens; or err says why it cannot. */
int broker_ready(struct broker *b, struct pale_err *err) _must_check_;
/* The certificate authority that the box is to trust, PEM; NULL if nothing is opened. After
 * broker_ready(). */
const char *broker_ca(const struct broker *b);

/* Gives it the listener of the box's SSH_AUTH_SOCK, which box does not have afterwards, and a
 * connection to the caller's agent. Nothing for a plan without one. */
int broker_agent(struct broker *b, struct box *box, struct pale_err *err) _must_check_;

int broker_fd(const struct broker *b);
/* Processor time that it has used since broker_ready(): all of it for what the box does, or what is
 * done to it. 0 for NULL. */
uint64_t broker_cpu_us(struct broker *b);
/* Sends it changed rules: {"network": ...} in a sealed memfd, borrowed. */
int broker_change(struct broker *b, int memfd, struct pale_err *err) _must_check_;
/* What its events name are from now on the first n rules, of these. */
void broker_changed(struct broker *b, size_t nrules);
struct broker_said {
	struct egress_event event;
	uint32_t id, index; /* BROKER_CONNECT; neither is checked */
};
/* The next event, every field checked. 1; 0: there is none now; negative: the broker has failed or
 * died, which ends the box. After broker_change(), with nothing in *ret: BROKER_TAKEN, the events
 * that follow name the new rules; BROKER_CHANGED, what they do not allow any more is ended.
 * BROKER_CONNECT: a connection to the published port network.publish[index] is wanted, under this
 * id. */
#define BROKER_TAKEN   2
#define BROKER_CHANGED 3
#define BROKER_CONNECT 4
int broker_take(struct broker *b, struct broker_said *ret, struct pale_err *err) _must_check_;
/* Gives it the listeners (borrowed) of network.publish[index]. */
int broker_publish(struct broker *b, uint32_t index, const int *fds, size_t n,
		   struct pale_err *err) _must_check_;
/* The connection that it wanted (borrowed), or -1 and an errno. Does not wait: a broker that is
 * behind gets none. */
void broker_connected(struct broker *b, uint32_t id, int error, int fd);
/* Ends it in good order: what it had still to tell is passed to fn. */
void broker_finish(struct broker *b, void (*fn)(void *arg, const struct egress_event *ev),
		   void *arg);
/* Kills it if it lives still. */
void broker_free(struct broker *b);
