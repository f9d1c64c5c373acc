/* The judge: see judge.h. In the caller's process. Of a log, only whether it has an event is used.
 */
#include "judge.h"

#include <string.h>

#include "base/buf.h"
#include "base/str.h"

#define STAGE "verify"

static json_t *find(const struct promised *p, const char *axis, const char *promise)
{
	json_t *it;
	size_t i;

	json_array_foreach(p->promises, i, it)
	{
		const char *a = json_string_value(json_object_get(it, "axis")),
			   *k = json_string_value(json_object_get(it, "promise"));

		if (a && k && strcmp(a, axis) == 0 && strcmp(k, promise) == 0)
			return it;
	}
	return NULL;
}

bool judge_as_asked(const struct promised *p, const char *axis, const char *promise)
{
	json_t *it = find(p, axis, promise);

	return it && !json_object_get(it, "fallback");
}

bool judge_promised(const struct promised *p, const struct attempt *a)
{
	if ((a->flags & ATTACK_NESTING && p->nested) ||
	    (a->flags & ATTACK_NETWORKS && !p->network) || (a->flags & ATTACK_LONELY && p->network))
		return false;
	return find(p, a->axis, a->promise) != NULL;
}

/* --- the log ------------------------------------------------------------------------------- */

/* "key=value"; a value that is "*" is any. */
static bool has(const json_t *event, const char *with)
{
	const char *equal = with ? strchr(with, '=') : NULL;
	char key[64], number[32];
	json_t *value;

	if (!equal)
		return true;
	snprintf(key, sizeof(key), "%.*s", (int)(equal - with), with);
	value = json_object_get(event, key);
	if (json_is_integer(value)) {
		snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(value));
		return strcmp(equal + 1, number) == 0;
	}
	return json_is_string(value) &&
	       (strcmp(equal + 1, "*") == 0 || strcmp(equal + 1, json_string_value(value)) == 0);
}

/* In a box of several, the program that is named must be the attack. */
static bool tells(const json_t *event, const struct attempt *a, bool several)
{
	const char *name = json_string_value(json_object_get(event, "event")),
		   *program = json_string_value(json_object_get(event, "program"));
	const char *base = program ? strrchr(program, '/') : NULL;

	if (!name || strcmp(name, a->event) != 0 || !has(event, a->with))
		return false;
	return !several || !program || strcmp(base ? base + 1 : program, a->name) == 0;
}

int judge_log(struct attempt **attempts, size_t n, const char *run, struct pale_err *err)
{
	_cleanup_free_ char *text = NULL;
	struct pale_audit_verdict verdict;
	size_t len = 0;
	FILE *f;
	int r = pale_audit_verify(run, NULL, &verdict, err);

	if (r < 0)
		return r;
	if (verdict.state != PALE_AUDIT_SEALED)
		return err_set(err, PALE_E_AUDIT, STAGE, 0,
			       "the log of the run %s is not whole: %s", run, verdict.what);
	f = open_memstream(&text, &len);
	if (!f)
		return err_nomem(err, STAGE);
	r = pale_audit_export(run, false, f, err);
	if (fclose(f) != 0 && r == 0)
		r = err_nomem(err, STAGE);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		attempts[i]->logged = attempts[i]->event ? LOGGED_NO : LOGGED_UNPROMISED;
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
		json_t *event = json_loads(line, JSON_ALLOW_NUL, NULL);

		for (size_t i = 0; event && i < n; i++)
			if (attempts[i]->event && tells(event, attempts[i], n > 1))
				attempts[i]->logged = LOGGED_YES;
		json_decref(event);
	}
	return 0;
}

/* Where an event of this kind is promised, and by which promise. */
static const char *log_promise(const struct attempt *a)
{
	if (strcmp(a->event, "call.denied") == 0)
		return "kernel.calls";
	if (strcmp(a->event, "file.blocked") == 0)
		return "files.events";
	if (a->limit)
		return NULL;
	return "network.attempts";
}

static bool weaker(const struct promised *p, const char *axis, const char *promise)
{
	return json_is_true(json_object_get(find(p, axis, promise), "best_effort"));
}

static bool event_promised(const struct promised *p, const struct attempt *a)
{
	if (strcmp(a->event, "call.denied") == 0)
		return !weaker(p, "kernel", "calls") && !(p->strict && a->flags & ATTACK_QUIET);
	if (strcmp(a->event, "file.blocked") == 0)
		return p->watch_all || (p->watch_writes && a->flags & ATTACK_WRITES);
	if (strcmp(a->event, "network.blocked") == 0)
		return !weaker(p, "network", "attempts") && !(p->strict && a->flags & ATTACK_QUIET);
	/* One that is refused with an errno is not always seen: the plan says where not. What the
	 * filter refused was never tried. */
	if (strcmp(a->event, "limit.hit") == 0)
		return a->ended || strcmp(a->limit, "memory") != 0;
	return a->limit || !(p->strict && a->flags & ATTACK_QUIET);
}

/* --- what the host saw ---------------------------------------------------------------------- */

/* What its servers and files say, whatever the attack itself says. */
static const char *const sights[][2] = {
	{"reached-tcp", "loopback_tcp"},     {"reached-tcp6", "loopback_tcp6"},
	{"reached-udp", "loopback_udp"},     {"reached-address", "host_address"},
	{"reached-unix", "unix_socket"},     {"reached-abstract", "abstract_socket"},
	{"reached-source", "source_socket"}, {"source-written", "source_write"},
};

void judge_host(struct corpus *c, const struct host_side *host, const struct promised *p)
{
	for (size_t i = 0; i < c->n; i++) {
		struct attempt *a = &c->list[i];
		bool seen = a->broken && host_saw(host, a->broken);

		for (size_t k = 0; k < ARRAY_SIZE(sights); k++)
			seen |= strcmp(sights[k][1], a->name) == 0 && host_saw(host, sights[k][0]);
		if (a->verdict == VERDICT_UNPROMISED)
			continue;
		if (seen) {
			a->verdict = VERDICT_BROKEN;
			snprintf(a->detail, sizeof(a->detail), "the host saw it");
		} else if (a->broken && a->verdict == VERDICT_HELD) {
			snprintf(a->detail, sizeof(a->detail), "nothing of it reached the host");
		}
		if (a->verdict != VERDICT_HELD || !a->event ||
		    (a->logged == LOGGED_NO && !event_promised(p, a)))
			a->logged = LOGGED_UNPROMISED;
	}
}

bool judge_breaks(const struct attempt *a, const char *axis, const char *promise, bool *ret_log)
{
	const char *by = a->logged == LOGGED_NO ? log_promise(a) : NULL;
	size_t len = strlen(axis);
	bool own = strcmp(a->axis, axis) == 0 && strcmp(a->promise, promise) == 0;

	*ret_log = false;
	if (own && a->verdict == VERDICT_BROKEN)
		return true;
	if (a->verdict != VERDICT_HELD || a->logged != LOGGED_NO)
		return false;
	*ret_log = by ? strncmp(by, axis, len) == 0 && by[len] == '.' &&
				   strcmp(by + len + 1, promise) == 0
		      : own;
	return *ret_log;
}
