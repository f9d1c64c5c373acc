/* Freezing a session: see session.h. In the supervisor, in its event loop; nothing here waits.
 *
 * While all of the box stands, so do the clocks of what runs: the time-out, and the grace of what
 * is being ended. Executions may come; they wait. Idle time does not pass, so that it can stay
 * frozen for days; its lifetime does, which is the promise that nothing is left for ever. */
#include "session/session_impl.h"

#include "base/clock.h"

#define STAGE	  "session"
#define LOOK_US	  1000	  /* between two looks whether it stands */
#define FREEZE_US 2000000 /* until then it has to */

/* --- clocks ------------------------------------------------------------------------------------
 */

void clock_start(struct session *s, struct clock *c, uint64_t us)
{
	c->runs = true;
	c->left_us = us;
	c->at_us = clock_mono_us() + us;
	if (!s->frozen)
		session_timer(c->event, us);
}

void clock_stop(struct clock *c)
{
	c->runs = false;
	event_del(c->event);
}

static void clock_hold(struct clock *c, uint64_t now)
{
	if (!c->runs)
		return;
	c->left_us = c->at_us > now ? c->at_us - now : 1;
	event_del(c->event);
}

static void clock_go_on(struct session *s, struct clock *c)
{
	if (c->runs)
		clock_start(s, c, c->left_us);
}

/* --- freezing ----------------------------------------------------------------------------------
 */

static void log_it(struct session *s, const char *event)
{
	/* What could not be put on record has ended the box. */
	(void)!s->config.ops->log(s->config.arg, event, json_object());
}

static void answer(struct session *s, const struct pale_err *err)
{
	void *client = s->freeze_client;

	s->freeze_client = NULL;
	event_del(s->freezing);
	if (client)
		s->config.ops->answer(client, err ? NULL : json_pack("{s:b}", "frozen", true), err);
}

/* The time that it stood is nobody's. */
static void account(struct session *s)
{
	uint64_t stood = clock_mono_us() - s->frozen_us;

	if (!s->running)
		return;
	s->running->queued_us += stood;
	s->running->started_us += stood;
}

static int thaw(struct session *s, struct pale_err *err)
{
	int r = s->config.ops->freeze(s->config.arg, false, err);

	if (r < 0)
		return r;
	account(s);
	s->frozen = false;
	clock_go_on(s, &s->timeout);
	clock_go_on(s, &s->grace);
	session_touch(s);
	return 0;
}

static void on_look(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;
	struct pale_err err;

	(void)fd;
	(void)what;
	if (s->config.ops->stands(s->config.arg)) {
		log_it(s, "session.frozen");
		answer(s, NULL);
	} else if (clock_mono_us() - s->frozen_us < FREEZE_US) {
		session_timer(s->freezing, LOOK_US);
	} else if (thaw(s, &err) < 0) {
		answer(s, &err);
	} else {
		err_set(&err, PALE_E_SYSTEM, STAGE, 0,
			"a process of the box is in a system call that does not end: it goes on");
		answer(s, &err);
		session_start_next(s);
	}
}

static int freeze(struct session *s, void *client, struct pale_err *err)
{
	int r = s->config.ops->freeze(s->config.arg, true, err);

	if (r < 0)
		return r;
	s->frozen = true;
	s->frozen_us = clock_mono_us();
	clock_hold(&s->timeout, s->frozen_us);
	clock_hold(&s->grace, s->frozen_us);
	session_touch(s);
	if (r == 0) {
		log_it(s, "session.frozen");
		return 0;
	}
	s->freeze_client = client;
	session_timer(s->freezing, LOOK_US);
	return SESSION_LATER;
}

int session_freeze(struct session *s, bool want, void *client, json_t **ret, struct pale_err *err)
{
	bool under_way = event_pending(s->freezing, EV_TIMEOUT, NULL);
	int r = session_check_alive(s, err);

	if (r == 0 && !s->ready)
		r = err_set(err, PALE_E_CONFLICT, STAGE, 0, "the session is still starting");
	if (r == 0 && want && under_way)
		r = err_set(err, PALE_E_CONFLICT, STAGE, 0, "it is being frozen already");
	if (r == 0 && want && !s->frozen)
		r = freeze(s, client, err);
	if (r == 0 && !want && s->frozen) {
		struct pale_err late;

		err_set(&late, PALE_E_CONFLICT, STAGE, 0, "it was let go on meanwhile");
		if (under_way)
			answer(s, &late);
		r = thaw(s, err);
		if (r == 0)
			log_it(s, "session.thawed");
	}
	if (r != 0)
		return r;
	session_start_next(s);
	*ret = json_pack("{s:b}", "frozen", s->frozen);
	return *ret ? 0 : err_nomem(err, STAGE);
}

bool session_frozen(const struct session *s)
{
	return s->frozen;
}

/* --- its life ----------------------------------------------------------------------------------
 */

int session_freeze_init(struct session *s, struct pale_err *err)
{
	s->freezing = event_new(s->config.base, -1, 0, on_look, s);
	return s->freezing ? 0 : err_nomem(err, STAGE);
}

void session_freeze_free(struct session *s)
{
	if (s->freezing)
		event_free(s->freezing);
}

void session_freeze_ended(struct session *s)
{
	struct pale_err err;

	if (!s->frozen)
		return;
	account(s);
	s->frozen = false;
	err_set(&err, PALE_E_CONFLICT, STAGE, 0, "the box has ended");
	answer(s, &err);
}

void session_freeze_forget(struct session *s, void *client)
{
	if (s->freeze_client == client)
		s->freeze_client = NULL;
}
