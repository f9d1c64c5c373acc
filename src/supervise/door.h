/* The supervisor's door: a Unix socket in the runtime directory, at which its owner's other
 * programs ask about the box and change its rules (docs/control-protocol.md). For boxes with a
 * network. It is never in the box's view, and what comes through it from inside, or from another
 * user than the owner and root, is refused. */
#pragma once

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "files/inside.h"
#include "session/session.h"
#include "supervise/control.h"
#include "supervise/live.h"

#define DOOR_CLIENTS 64 /* at a time; the one that is idle for longest makes room */

/* What the box is in; a command says in which of them it is permitted. */
enum door_state {
	DOOR_RUNNING = 1 << 0,
	DOOR_ENDING = 1 << 1, /* nothing is alive in it; its last output is passed on */
	DOOR_HELD = 1 << 2,   /* a pool holds it ready, and nobody has taken it */
};

struct door;

/* What the commands for files need: door_files.c. */
struct door_files {
	struct inside *inside;
	const struct plan *plan;
	/* Whether the box's memory has room for so much more. */
	bool (*room)(void *arg, uint64_t bytes);
	/* Puts files.changed on record; body is stolen. Negative: it could not, and the box ends.
	 */
	int (*log)(void *arg, json_t *body, struct pale_err *err);
	void *arg;
};

struct door_config {
	struct event_base *base; /* borrowed, as all that follows */
	const char *id;		 /* of the run */
	int run_fd;		 /* its directory in the state directory */
	struct live *live;	 /* NULL: no network */
	struct session *session; /* NULL: none */
	struct door_files files;
	enum door_state (*state)(void *arg);
	json_t *(*info)(void *arg); /* what `info` answers; NULL: no memory */
	void (*destroy)(void *arg); /* ends the box */
	/* Takes over a session that was held ready; name may be NULL. */
	int (*claim)(void *arg, const char *name, const struct live_who *who, struct pale_err *err);
	/* Puts door.refused on record; body is stolen. */
	void (*refused)(void *arg, json_t *body);
	void *arg;
};

/* Makes the socket and listens. PALE_E_HOST: there is no place for it that can be trusted. */
int door_new(const struct door_config *config, struct door **ret,
	     struct pale_err *err) _must_check_;
/* Closes every connection and removes the socket; nobody can come any more. */
void door_shut(struct door *d);
/* A connection that was made elsewhere: looked at, and served, like one that comes here. Taken
 * over. */
void door_admit(struct door *d, int fd);
/* Waits until nothing is left of it. */
void door_free(struct door *d);

/* One command of the protocol. */
struct door_call {
	void *client; /* for door_answer() */
	const struct door_config *config;
	struct live_who who;
	json_t *arguments;
	enum control_code code; /* of a failure; set by the handler */
};
/* What a handler says besides 0 (*ret is the result) and a negative code. */
#define DOOR_LATER 1 /* door_answer() comes */
#define DOOR_AGAIN 2 /* something else has to end first: call again then */
struct door_command {
	const char *name;
	unsigned states; /* enum door_state, in which it is permitted */
	int (*run)(struct door_call *call, json_t **ret, struct pale_err *err);
};
extern const struct door_command door_commands[]; /* door_commands.c; up to a row without a name */

/* Something has ended for which others wait. */
void door_again(struct door *d);
const struct door_config *door_config_of(void *client);
/* The answer to a call that was to come later; result is stolen, or NULL and err. */
void door_answer(void *client, json_t *result, const struct pale_err *err);
