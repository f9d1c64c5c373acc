/* Runs as they happen: see follow.h. In the caller's process; what is read is hostile. */
#include "follow.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>

#include "audit/lines.h"
#include "audit/state.h"
#include "base/fd.h"

#define STAGE "audit"

enum { TAILS = 256 };

struct tail {
	char id[AUDIT_ID_SIZE];
	int log, watch;
	bool ended;
	struct log_lines lines;
};

struct follow {
	audit_follower *fn;
	void *arg;
	struct tail tails[TAILS];
	size_t n;
	bool many;
	int inotify;
	struct audit_state state;
};

/* Tells what is new: 0, what fn said, or a negative errno. */
static int drain(struct follow *f, struct tail *t)
{
	const char *text;
	size_t len;
	int r;

	while ((r = log_next(&t->lines, &text, &len)) > 0) {
		_cleanup_line_ struct chain_line line = {0};

		if (chain_parse(text, len, &line)) {
			t->ended = true;
			return f->fn(f->arg, t->id, NULL);
		}
		t->ended |= strcmp(line.event, "box.end") == 0;
		r = f->fn(f->arg, t->id, line.object);
		if (r)
			return r;
	}
	return r;
}

static int add_tail(struct follow *f, const char *id, struct pale_err *err)
{
	struct tail *t = NULL;
	char path[4200];

	for (size_t i = 0; i < f->n; i++) {
		if (strcmp(f->tails[i].id, id) == 0)
			return 0;
		if (f->tails[i].log < 0)
			t = &f->tails[i];
	}
	if (!t) {
		if (f->n == TAILS)
			return 0;
		t = &f->tails[f->n++];
	}
	*t = (struct tail){.log = -1, .watch = -1};
	snprintf(t->id, sizeof(t->id), "%s", id);
	int r = audit_state_run(&f->state, id, O_RDONLY, NULL, &t->log, err);

	if (r < 0) {
		t->id[0] = '\0';
		return r;
	}
	t->lines = LOG_LINES(t->log);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", t->log);
	if (f->inotify >= 0)
		t->watch = inotify_add_watch(f->inotify, path, IN_MODIFY);
	return 0;
}

static void drop_tail(struct follow *f, struct tail *t)
{
	if (t->watch >= 0)
		inotify_rm_watch(f->inotify, t->watch);
	close_fd(&t->log);
	log_lines_done(&t->lines);
}

static void follow_done(struct follow *f)
{
	for (size_t i = 0; i < f->n; i++)
		drop_tail(f, &f->tails[i]);
	close_fd(&f->inotify);
	audit_state_done(&f->state);
}

/* Whether a line that is not told is the run's last event but for what is done with its changes
 * later. Text of the box's has no quotes of its own: a line is parsed only if it may be. */
static bool is_end(const char *text, size_t len)
{
	_cleanup_line_ struct chain_line line = {0};

	return memmem(text, len, "\"box.end\"", 9) && !chain_parse(text, len, &line) &&
	       strcmp(line.event, "box.end") == 0;
}

/* Passes over all but the last lines of a run: its lines are counted first. */
static int skip_to_last(struct tail *t, uint64_t last)
{
	struct log_lines count = LOG_LINES(t->log);
	const char *text;
	size_t len;
	uint64_t n = 0;
	int r = 0;

	while (log_next(&count, &text, &len) > 0)
		n++;
	log_lines_done(&count);
	for (; n > last; n--) {
		r = log_next(&t->lines, &text, &len);
		if (r <= 0)
			return r;
		t->ended |= is_end(text, len);
	}
	return 0;
}

/* Waits for changes; a second is the longest, since the first line of a run that has just been made
 * may come before our watch. */
static int follow_on(struct follow *f, uint64_t last)
{
	char events[4096] __attribute__((aligned(8)));
	int r;

	for (bool began = f->many;; began = false) {
		struct pollfd p = {.fd = f->inotify, .events = POLLIN};
		bool any = false;

		if (f->many) {
			char(*ids)[AUDIT_ID_SIZE];
			size_t n;

			r = audit_state_list_active(&f->state, &ids, &n);
			if (r < 0)
				return r;
			for (size_t i = 0; i < n; i++)
				(void)!add_tail(f, ids[i], NULL);
			free(ids);
			/* What is live already has a past; what starts later is told as a whole. */
			for (size_t i = 0; began && i < f->n; i++)
				if (f->tails[i].log >= 0)
					(void)!skip_to_last(&f->tails[i], last);
		}
		for (size_t i = 0; i < f->n; i++) {
			struct tail *t = &f->tails[i];

			if (t->log < 0)
				continue;
			r = drain(f, t);
			if (r)
				return r;
			if (t->ended)
				drop_tail(f, t);
			else
				any = true;
		}
		r = f->fn(f->arg, NULL, NULL);
		if (r)
			return r;
		if (!any && !f->many)
			return 0;
		if (poll(&p, 1, 1000) < 0 && errno != EINTR)
			return -errno;
		while (read(f->inotify, events, sizeof(events)) > 0)
			;
	}
}

int audit_follow(const char *id, bool on, uint64_t last, audit_follower *fn, void *arg,
		 struct pale_err *err)
{
	_cleanup_free_ struct follow *f = calloc(1, sizeof(*f));
	char active[4200];
	int r;

	if (!f)
		return err_nomem(err, STAGE);
	*f = (struct follow){
		.fn = fn, .arg = arg, .many = !id, .inotify = -1, .state = AUDIT_STATE_NONE};
	r = audit_state_open(&f->state, err);
	if (r == 0 && (on || f->many)) {
		snprintf(active, sizeof(active), "%s/active", f->state.path);
		f->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
		if (f->inotify < 0 || (f->many && inotify_add_watch(f->inotify, active,
								    IN_CREATE | IN_MOVED_FROM) < 0))
			r = err_set(err, PALE_E_SYSTEM, STAGE, errno, "watching the logs");
	}
	if (r == 0 && id)
		r = add_tail(f, id, err);
	if (r == 0) {
		r = id ? skip_to_last(&f->tails[0], last) : 0;
		if (r == 0 && id)
			r = drain(f, &f->tails[0]);
		if (r == 0 && (f->many || (on && !f->tails[0].ended)))
			r = follow_on(f, last);
		if (r < 0)
			r = err_set(err, PALE_E_SYSTEM, STAGE, -r, "reading the logs");
	}
	follow_done(f);
	return r;
}
