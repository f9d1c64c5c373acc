/* The report: see report.h. Pure formatting; what comes from a box was escaped before. */
#include "report.h"

#include <string.h>

#include "base/wrap.h"

static const char *const verdicts[] = {"unclear", "held", "broken", "absent", "not promised"};

static json_t *attempt_json(const struct attempt *a)
{
	json_t *o = json_copy(a->about);

	json_object_del(o, "flags");
	json_object_set_new(o, "state", json_string(verdicts[a->verdict]));
	if (a->logged != LOGGED_UNPROMISED)
		json_object_set_new(o, "logged", json_boolean(a->logged == LOGGED_YES));
	if (*a->detail)
		json_object_set_new(o, "detail", json_string(a->detail));
	if (*a->lowered)
		json_object_set_new(o, "lowered", json_string(a->lowered));
	if (*a->run)
		json_object_set_new(o, "run", json_string(a->run));
	return o;
}

static bool has_promise(json_t *list, json_t *wanted)
{
	json_t *it;
	size_t i;

	json_array_foreach(list, i, it)
	{
		if (json_equal(json_object_get(it, "axis"), json_object_get(wanted, "axis")) &&
		    json_equal(json_object_get(it, "promise"), json_object_get(wanted, "promise")))
			return true;
	}
	return false;
}

static const char *judge_promise(const struct corpus *c, json_t *o)
{
	const char *axis = json_string_value(json_object_get(o, "axis")),
		   *promise = json_string_value(json_object_get(o, "promise"));
	json_t *broken = json_array(), *unlogged = json_array();
	int counts[5] = {0}, logged = 0, logs = 0;

	for (size_t i = 0; axis && promise && i < c->n; i++) {
		const struct attempt *a = &c->list[i];
		bool log;

		if (judge_breaks(a, axis, promise, &log))
			json_array_append_new(log ? unlogged : broken, json_string(a->name));
		if (strcmp(a->axis, axis) != 0 || strcmp(a->promise, promise) != 0 ||
		    a->verdict == VERDICT_UNPROMISED)
			continue;
		counts[a->verdict]++;
		logs += a->logged != LOGGED_UNPROMISED;
		logged += a->logged == LOGGED_YES;
	}
	json_object_set_new(o, "attacks",
			    json_integer(counts[VERDICT_HELD] + counts[VERDICT_BROKEN] +
					 counts[VERDICT_UNCLEAR] + counts[VERDICT_ABSENT]));
	json_object_set_new(o, "absent", json_integer(counts[VERDICT_ABSENT]));
	json_object_set_new(o, "logged", json_integer(logged));
	json_object_set_new(o, "to_be_logged", json_integer(logs));
	json_object_set(o, "broken_by", broken);
	json_object_set(o, "not_logged", unlogged);
	logs = json_array_size(broken) + json_array_size(unlogged) > 0;
	json_decref(broken);
	json_decref(unlogged);
	if (logs)
		return "broken";
	return counts[VERDICT_UNCLEAR] ? "unclear" : counts[VERDICT_HELD] ? "held" : "not tried";
}

json_t *report_json(const struct corpus *c, const struct promised *p, json_t *own, bool part,
		    int *ret_state)
{
	json_t *o = json_object(), *promises = json_array(), *attempts = json_array(), *it, *seen;
	int counts[5] = {0};
	bool broken = false, unclear = false, tried;
	size_t i;

	/* The rules of a policy have a line each in the plan: here one is enough. */
	json_array_foreach(p->promises, i, it)
	{
		const char *state;

		if (has_promise(promises, it))
			continue;
		seen = json_deep_copy(it);
		state = judge_promise(c, seen);
		if (part && strcmp(state, "not tried") == 0) {
			json_decref(seen);
			continue;
		}
		broken |= strcmp(state, "broken") == 0;
		unclear |= strcmp(state, "unclear") == 0;
		json_object_set_new(seen, "state", json_string(state));
		if (!has_promise(own, it))
			json_object_set_new(seen, "own_files", json_true());
		json_array_append_new(promises, seen);
	}
	for (i = 0; i < c->n; i++) {
		counts[c->list[i].verdict]++;
		json_array_append_new(attempts, attempt_json(&c->list[i]));
	}
	tried = broken || unclear || counts[VERDICT_HELD];
	*ret_state = broken ? 0 : unclear || !tried ? 2 : 1;
	json_object_set_new(o, "state",
			    json_string(broken	  ? "broken"
					: unclear ? "unclear"
					: tried	  ? "held"
						  : "not tried"));
	json_object_set_new(o, "counts",
			    json_pack("{si si si si si}", "held", counts[VERDICT_HELD], "broken",
				      counts[VERDICT_BROKEN], "unclear", counts[VERDICT_UNCLEAR],
				      "absent", counts[VERDICT_ABSENT], "not_promised",
				      counts[VERDICT_UNPROMISED]));
	json_object_set_new(o, "promises", promises);
	json_object_set_new(o, "attacks", attempts);
	return o;
}

/* --- for people ---------------------------------------------------------------------------- */

struct look {
	FILE *out;
	const char *bold, *dim, *red, *yellow, *green, *off;
	bool verbose;
};

static const char *text(json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static int number(json_t *o, const char *key)
{
	return (int)json_integer_value(json_object_get(o, key));
}

static json_t *find_attack(json_t *attacks, const char *name)
{
	json_t *it;
	size_t i;

	json_array_foreach(attacks, i, it) if (strcmp(text(it, "attack"), name) == 0) return it;
	return NULL;
}

static void print_attack(const struct look *l, json_t *a)
{
	const char *state = text(a, "state");
	bool bad = strcmp(state, "broken") == 0;
	json_t *logged = json_object_get(a, "logged");

	fprintf(l->out, "      %s%-7s%s %-22s ", bad ? l->red : l->dim, state, l->off,
		text(a, "attack"));
	wrap_print(l->out, text(a, "gain"), 37, 100);
	if (*text(a, "detail") || logged || *text(a, "lowered"))
		fprintf(l->out, "%37s%s%s%s%s%s%s\n", "", l->dim, text(a, "detail"),
			*text(a, "lowered") ? "; in a box with " : "", text(a, "lowered"),
			json_is_true(logged)	? "; in the log"
			: json_is_false(logged) ? "; NOT IN THE LOG"
						: "",
			l->off);
}

static void print_names(const struct look *l, json_t *promise, const char *key, const char *label,
			json_t *attacks)
{
	json_t *name;
	size_t i;

	json_array_foreach(json_object_get(promise, key), i, name)
	{
		json_t *a = find_attack(attacks, json_string_value(name));

		fprintf(l->out, "      %s%s %s%s: ", l->red, label, text(a, "attack"), l->off);
		wrap_print(l->out, text(a, "gain"), 8, 100);
		fprintf(l->out, "        %s, attacks/%s/%s.c%s%s\n", text(a, "source"),
			text(a, "axis"), text(a, "attack"), *text(a, "detail") ? ": " : "",
			text(a, "detail"));
	}
}

static void print_promise(const struct look *l, json_t *p, json_t *attacks)
{
	const char *state = text(p, "state"), *colour = l->green;
	int tried = number(p, "attacks"), absent = number(p, "absent");
	json_t *a;
	size_t i;

	if (strcmp(state, "broken") == 0 || strcmp(state, "unclear") == 0)
		colour = l->red;
	else if (strcmp(state, "held") != 0)
		colour = l->yellow;
	fprintf(l->out, "  %s%-12s%s %s%-9s%s", l->bold, text(p, "promise"), l->off, colour, state,
		l->off);
	if (tried)
		fprintf(l->out, " %3d attack%s", tried, tried == 1 ? " " : "s");
	if (number(p, "to_be_logged"))
		fprintf(l->out, "  %d of %d in the log", number(p, "logged"),
			number(p, "to_be_logged"));
	if (absent)
		fprintf(l->out, "%s  %d not on this host", l->dim, absent);
	if (json_is_true(json_object_get(p, "own_files")))
		fprintf(l->out, "%s  (with files of verify's own)", l->dim);
	fprintf(l->out, "%s\n", l->off);
	print_names(l, p, "broken_by", "broken by", attacks);
	print_names(l, p, "not_logged", "not in the log:", attacks);
	json_array_foreach(attacks, i, a)
	{
		bool here = strcmp(text(a, "axis"), text(p, "axis")) == 0 &&
			    strcmp(text(a, "promise"), text(p, "promise")) == 0;

		if (here && strcmp(text(a, "state"), "unclear") == 0 && !l->verbose)
			fprintf(l->out, "      %sunclear: %s%s: %s\n", l->red, text(a, "attack"),
				l->off, text(a, "detail"));
		if (here && l->verbose && strcmp(text(a, "state"), "not promised") != 0)
			print_attack(l, a);
	}
}

static void print_lowered(const struct look *l, json_t *attacks)
{
	json_t *seen = json_object(), *a;
	size_t i;

	json_array_foreach(attacks, i, a)
	{
		const char *lowered = text(a, "lowered");

		if (!*lowered || json_object_get(seen, lowered))
			continue;
		if (!json_object_size(seen))
			fprintf(l->out, "\nExceeded in boxes with a lower limit than the policy's, "
					"to take seconds and little memory:\n");
		fprintf(l->out, "  %s\n", lowered);
		json_object_set_new(seen, lowered, json_true());
	}
	json_decref(seen);
}

void pale_verify_print(const char *report, FILE *out, unsigned flags)
{
	bool colour = flags & PALE_PRINT_COLOUR;
	const struct look l = {
		.out = out,
		.bold = colour ? "\033[1m" : "",
		.dim = colour ? "\033[2m" : "",
		.red = colour ? "\033[31m" : "",
		.yellow = colour ? "\033[33m" : "",
		.green = colour ? "\033[32m" : "",
		.off = colour ? "\033[0m" : "",
		.verbose = flags & PALE_PRINT_ATTACKS,
	};
	json_t *o = json_loads(report, JSON_ALLOW_NUL, NULL), *it,
	       *attacks = json_object_get(o, "attacks"), *counts = json_object_get(o, "counts");
	const char *axis = "";
	size_t i;

	json_array_foreach(json_object_get(o, "promises"), i, it)
	{
		if (strcmp(text(it, "axis"), axis) != 0)
			fprintf(out, "%s%s%s\n", l.bold, text(it, "axis"), l.off);
		axis = text(it, "axis");
		print_promise(&l, it, attacks);
	}
	print_lowered(&l, attacks);
	fprintf(out, "\n%s%s%s: %d attacks denied, %d succeeded", l.bold, text(o, "state"), l.off,
		number(counts, "held"), number(counts, "broken"));
	if (number(counts, "unclear"))
		fprintf(out, ", %d unclear", number(counts, "unclear"));
	fprintf(out, ", %d not on this host, %d aimed at what this policy does not promise\n",
		number(counts, "absent"), number(counts, "not_promised"));
	json_decref(o);
}
