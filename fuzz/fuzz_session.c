/* What a kernel says to its session, from hostile bytes: packets of any kind in any order, between
 * requests of clients. Whatever it says, each client is answered once, an execution ends once, what
 * is kept is bounded, and the end of the box is the end of all of it.
 *
 * The input is a list of steps: a byte that says what, two bytes of length, and so many bytes. */
#include <event2/event.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "session/kernel.h"
#include "session/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CLIENTS 16

struct world {
	struct event_base *base;
	struct session *session;
	bool failed;
	bool waits[CLIENTS]; /* for an answer */
	unsigned ends;	     /* of executions */
	unsigned asked;	     /* of the files: answered later, now and then */
	bool begin, settle, put_back;
};

static int do_signal(void *arg, int32_t pid, int number, bool group)
{
	(void)arg;
	(void)number;
	(void)group;
	if (pid <= 1)
		abort();
	return 0;
}

static int do_log(void *arg, const char *event, json_t *body)
{
	struct world *w = arg;

	if (!body)
		abort();
	if (strcmp(event, "exec.end") == 0)
		w->ends++;
	json_decref(body);
	return 0;
}

static void do_fail(void *arg, const struct pale_err *err)
{
	struct world *w = arg;

	(void)err;
	w->failed = true;
}

static void do_said(void *arg, const char *data, size_t len)
{
	(void)arg;
	/* All of it is there. */
	for (size_t i = 0; i < len; i++)
		__asm__ volatile("" : : "r"(data[i]));
}

static void do_nothing(void *arg)
{
	(void)arg;
}

static uint64_t do_cpu(void *arg)
{
	(void)arg;
	return 0;
}

static int do_freeze(void *arg, bool freeze, struct pale_err *err)
{
	static unsigned n;

	(void)arg;
	(void)err;
	/* Now and then not at once. */
	return freeze ? n++ & 1 : 0;
}

static bool do_stands(void *arg)
{
	(void)arg;
	return true;
}

static int do_begin(void *arg, bool rollback, bool *ret_kept, char *ret_why)
{
	struct world *w = arg;

	*ret_kept = rollback;
	*ret_why = '\0';
	w->begin = w->asked++ & 1;
	return w->begin ? SESSION_LATER : 0;
}

static int do_settle(void *arg, bool back, json_t *result)
{
	struct world *w = arg;

	(void)back;
	if (!json_is_object(result))
		abort();
	w->settle = w->asked++ & 1;
	return w->settle ? SESSION_LATER : 0;
}

static int do_put_back(void *arg, json_t **ret)
{
	struct world *w = arg;

	*ret = json_pack("{s:i}", "files_back", 1);
	w->put_back = w->asked++ & 1;
	if (!w->put_back)
		return 0;
	json_decref(*ret);
	*ret = NULL;
	return SESSION_LATER;
}

/* What was to come later; also what nobody waits for any more. */
static void answer_files(struct world *w)
{
	bool begin = w->begin, settle = w->settle, put_back = w->put_back;

	w->begin = w->settle = w->put_back = false;
	if (begin)
		session_begun(w->session, false, "why");
	if (settle)
		session_settled(w->session, json_pack("{s:[]}", "files"));
	if (put_back)
		session_put_back(w->session, json_pack("{s:i}", "files_back", 1));
}

static void do_answer(void *client, json_t *result, const struct pale_err *err)
{
	bool *waits = client;

	if (!*waits || (!result && !*err->message))
		abort();
	*waits = false;
	json_decref(result);
}

static void do_over(void *arg, const char *why)
{
	(void)arg;
	(void)why;
}

static const struct session_ops ops = {
	.signal = do_signal,
	.log = do_log,
	.fail = do_fail,
	.drain = do_nothing,
	.cpu_us = do_cpu,
	.said = do_said,
	.look_at_memory = do_nothing,
	.freeze = do_freeze,
	.stands = do_stands,
	.begin = do_begin,
	.settle = do_settle,
	.put_back = do_put_back,
	.answer = do_answer,
	.ready = do_nothing,
	.over = do_over,
};

/* One request of a client that waits for nothing else. */
static void request(struct world *w, uint8_t what, const char *text, size_t len)
{
	struct session *s = w->session;
	bool *client = NULL;
	struct pale_err err;
	json_t *answer = NULL;
	uint32_t id = len ? (uint8_t)text[0] % 8 : 0;
	int r = 0;

	for (size_t i = 0; i < CLIENTS && !client; i++)
		client = w->waits[i] ? NULL : &w->waits[i];
	if (!client)
		return;
	*client = true;
	switch (what % 10) {
	case 0:
		r = session_exec(s,
				 &(struct session_exec){.code = text,
							.len = len,
							.timeout_ms = 1000000,
							.rollback = what & 64 ? 1 : -1,
							.wait_ms = what & 128 ? 1000000 : 0},
				 client, &answer, &err);
		break;
	case 1:
		r = session_output(s, id, len, what & 128 ? 1000000 : 0, client, &answer, &err);
		break;
	case 2:
		r = session_interrupt(s, id, 1000000, ESCALATE_ROLLBACK, what & 128 ? 1000000 : 0,
				      client, &answer, &err);
		break;
	case 3: r = session_undo(s, client, &answer, &err); break;
	case 4: r = session_restart(s, client, &answer, &err); break;
	case 5: r = session_ask(s, what & 64, text, len, id, client, &answer, &err); break;
	case 6: r = session_input(s, id, text, len, what & 64, &answer, &err); break;
	case 7: r = session_freeze(s, what & 64, client, &answer, &err); break;
	case 8: answer = session_show(s, what & 64); break;
	case 9:
		session_print(s, what & 64 ? EXECUTION_STDERR : EXECUTION_STDOUT, text, len);
		*client = false;
		return;
	}
	if (r == SESSION_LATER)
		return;
	if ((r == 0) != (answer != NULL))
		abort();
	*client = false;
	json_decref(answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world w = {.base = event_base_new()};
	struct session_config config = {
		.base = w.base,
		.kernel = "python",
		.name = "fuzzed",
		.wall_ms = 1000000,
		.cpu_ms = 1000000,
		.output_bytes = 4096,
		.output_total_bytes = 1 << 20,
		.grace_ms = 1000000,
		.idle_ms = 1000000,
		.lifetime_ms = 1000000,
		.rollback = true,
		.ops = &ops,
		.arg = &w,
	};
	struct pale_err err;
	int pair[2];

	if (!w.base || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		abort();
	config.fd = pair[0];
	if (session_new(&config, &w.session, &err) < 0)
		abort();
	while (size >= 3 && !w.failed) {
		size_t len = (size_t)data[1] | (size_t)data[2] << 8;
		uint8_t what = data[0];
		char drained[FRAME_PACKET_MAX];

		data += 3;
		size -= 3;
		if (what & 16)
			answer_files(&w);
		if (len > size)
			len = size;
		if (what % 2)
			request(&w, what / 2, (const char *)data, len);
		else if (len)
			(void)!send(pair[1], data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		while (recv(pair[1], drained, sizeof(drained), MSG_DONTWAIT) > 0)
			;
		event_base_loop(w.base, EVLOOP_NONBLOCK);
		data += len;
		size -= len;
	}
	/* One that goes away is not answered. */
	session_forget(w.session, &w.waits[0]);
	w.waits[0] = false;
	session_ended(w.session, "destroyed");
	answer_files(&w);
	for (size_t i = 0; i < CLIENTS; i++)
		if (w.waits[i])
			abort();
	session_free(w.session);
	close(pair[1]);
	event_base_free(w.base);
	return 0;
}
