/* Printing a plan: JSON for programs and for the digest, lines for people. */
#include "plan.h"

#include <string.h>

#include "audit/audit.h"
#include "base/str.h"
#include "base/wrap.h"

static void set_text(json_t *o, const char *key, const char *s)
{
	if (s)
		json_object_set_new(o, key, audit_text(s, strlen(s), 65536));
}

static void set_number(json_t *o, const char *key, uint64_t n)
{
	if (n)
		json_object_set_new(o, key, json_integer((json_int_t)n));
}

static json_t *step_json(const struct step *s)
{
	json_t *o = json_object();

	set_text(o, "step", step_name(s->type));
	set_text(o, "source", s->source);
	set_text(o, "target", s->target);
	set_text(o, "content", s->content);
	set_number(o, "size_bytes", s->size_bytes);
	set_number(o, "inodes", s->inodes);
	set_number(o, "mode", s->mode);
	if (s->type == STEP_SOURCE || s->type == STEP_SKELETON || s->type == STEP_VIEW ||
	    s->type == STEP_OVERLAY)
		json_object_set_new(o, "index", json_integer(s->index));
	if (s->own)
		json_object_set_new(o, "own", json_true());
	if (s->device)
		json_object_set_new(o, "device", json_true());
	if (s->nested)
		json_object_set_new(o, "nested", json_true());
	if (s->swap_owner)
		json_object_set_new(o, "swap_owner", json_true());
	if (s->readonly)
		json_object_set_new(o, "readonly", json_true());
	return o;
}

static json_t *promise_json(const struct promise *p)
{
	json_t *o = json_object();

	set_text(o, "axis", axis_names[p->axis]);
	set_text(o, "promise", p->key);
	set_text(o, "what", p->what);
	if (*p->mechanism)
		set_text(o, "mechanism", p->mechanism);
	if (*p->fallback)
		set_text(o, "fallback", p->fallback);
	if (*p->uncovered)
		set_text(o, "not_covered", p->uncovered);
	if (p->best_effort)
		json_object_set_new(o, "best_effort", json_true());
	return o;
}

static json_t *strings_json(char *const *list)
{
	json_t *a = json_array();

	for (size_t i = 0; list && list[i]; i++)
		json_array_append_new(a, audit_text(list[i], strlen(list[i]), 65536));
	return a;
}

/* The rules as the broker gets them. Of secrets there is where their values come from. */
static void set_network(json_t *o, const struct plan *p)
{
	json_t *network = json_loads(p->network_text, 0, NULL);

	set_text(network, "mechanism", nft_set_name(p->nft));
	json_object_set_new(o, "network", network);
}

json_t *plan_to_json(const struct plan *p)
{
	json_t *o = json_object(), *steps = json_array(), *promises = json_array(),
	       *rules = json_array();

	for (size_t i = 0; i < p->nsteps; i++)
		json_array_append_new(steps, step_json(&p->steps[i]));
	for (size_t i = 0; i < p->npromises; i++)
		json_array_append_new(promises, promise_json(&p->promises[i]));
	for (size_t i = 0; i < p->nrules; i++) {
		json_t *rule = json_object();

		set_text(rule, "path", p->rules[i].path);
		json_object_set_new(rule, "access", json_integer(p->rules[i].access));
		json_array_append_new(rules, rule);
	}
	set_text(o, "isolation", "process");
	set_text(o, "kernel", p->host.release);
	set_text(o, "user", p->user);
	json_object_set_new(o, "uid", json_integer(p->uid));
	json_object_set_new(o, "promises", promises);
	json_object_set_new(o, "steps", steps);
	json_object_set_new(o, "landlock", rules);
	set_text(o, "program", p->command.program);
	json_object_set_new(o, "argv", strings_json(p->command.argv));
	json_object_set_new(o, "env", strings_json(p->command.env));
	set_text(o, "cwd", p->command.cwd);
	set_number(o, "seccomp_watch", p->seccomp_watch);
	if (p->network)
		set_network(o, p);
	if (p->command.tty)
		json_object_set_new(o, "tty", json_true());
	return o;
}

static void print_field(FILE *out, const char *label, const char *text, const char *on,
			const char *off)
{
	if (!*text)
		return;
	fprintf(out, "    %s%-13s%s ", on, label, off);
	wrap_print(out, text, 18, 100);
}

void plan_print(const struct plan *p, FILE *out, bool colour, bool steps)
{
	const char *bold = colour ? "\033[1m" : "", *dim = colour ? "\033[2m" : "";
	const char *yellow = colour ? "\033[33m" : "", *off = colour ? "\033[0m" : "";

	for (size_t axis = 0; axis <= AXIS_RESOURCES; axis++) {
		fprintf(out, "%s%s%s\n", bold, axis_names[axis], off);
		for (size_t i = 0; i < p->npromises; i++) {
			const struct promise *it = &p->promises[i];

			if (it->axis != axis)
				continue;
			fprintf(out, "  %s%-15s%s ", bold, it->key, off);
			wrap_print(out, it->what, 18, 100);
			print_field(out, "by", it->mechanism, dim, off);
			print_field(out, "fallback", it->fallback, yellow, off);
			print_field(out, "not covered", it->uncovered, yellow, off);
		}
	}
	if (!steps)
		return;
	fprintf(out, "%ssteps%s\n", bold, off);
	for (size_t i = 0; i < p->nsteps; i++) {
		const struct step *s = &p->steps[i];
		char target[256] = "", source[256] = "";

		if (s->target)
			str_escape_into(target, sizeof(target), s->target, strlen(s->target));
		if (s->source)
			str_escape_into(source, sizeof(source), s->source, strlen(s->source));
		fprintf(out, "  %-9s %s%s%s%s\n", step_name(s->type), s->target ? "/" : "", target,
			*source ? " from " : "", source);
	}
}
