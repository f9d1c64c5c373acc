/* What concerns several keys at once, and what one policy allows more than another. Runs where
 * policies are read; touches no file. */
#include "policy/policy.h"

#include <stdarg.h>
#include <string.h>

#include "base/str.h"
#include "policy/model.h"
#include "policy/options.h"
#include "policy/paths.h"

/* A path that hides nothing is most likely misspelt, and what was meant would be seen. */
static int check_hidden(const struct policy *p, const struct policy_file *hidden,
			struct pale_err *err)
{
	if (strcmp(p->image, "host") != 0 || path_inside(hidden->path, "/usr") ||
	    path_inside(hidden->path, "/etc"))
		return 0;
	for (size_t i = 0; i < p->nfiles; i++)
		if (p->files[i].access != ACCESS_HIDE &&
		    path_inside(hidden->path, p->files[i].path))
			return 0;
	return err_set(err, PALE_E_POLICY, "policy", 0,
		       "%s: %s hides nothing: it lies in no other entry of files", hidden->where,
		       QUOTED(hidden->path));
}

static int check_collected(const struct policy *p, size_t index, struct pale_err *err)
{
	const struct policy_file *f = &p->files[index];

	for (size_t i = 0; i < index; i++)
		if (p->files[i].collect && strcmp(p->files[i].collect, f->collect) == 0 &&
		    strcmp(p->files[i].path, f->path) != 0)
			return err_set(err, PALE_E_POLICY, "policy", 0,
				       "%s: two entries are collected to %s (see %s)", f->where,
				       QUOTED(f->collect), p->files[i].where);
	return 0;
}

int policy_check(const struct policy *p, struct pale_err *err)
{
	for (size_t i = 0; i < p->nfiles; i++) {
		int r = 0;

		if (p->files[i].access == ACCESS_HIDE)
			r = check_hidden(p, &p->files[i], err);
		else if (p->files[i].collect)
			r = check_collected(p, i, err);
		if (r < 0)
			return r;
	}
	return network_check(p, err);
}

struct lines {
	char (*line)[160];
	size_t n, max;
};

static void add_line(struct lines *l, const char *fmt, ...) _printf_(2, 3);
static void add_line(struct lines *l, const char *fmt, ...)
{
	va_list ap;

	if (l->n++ >= l->max)
		return;
	va_start(ap, fmt);
	vsnprintf(l->line[l->n - 1], sizeof(*l->line), fmt, ap);
	va_end(ap);
}

/* The place of a word in the order of its table, from the tightest. */
static size_t rank(const struct policy_option *o, uint64_t value)
{
	size_t i = 0;

	while (o->words[i].word && o->words[i].value != value)
		i++;
	return i;
}

static bool wider(const struct policy_option *o, const struct policy *a, const struct policy *b)
{
	_cleanup_buf_ struct buf x = BUF_INIT(8192), y = BUF_INIT(8192);
	uint64_t was, is;

	if (o->widens == WIDENS_NOT)
		return false;
	if (o->widens == WIDENS_CHANGE) {
		option_format(o, a, &x);
		option_format(o, b, &y);
		return x.failed || y.failed ||
		       strcmp(x.data ? x.data : "", y.data ? y.data : "") != 0;
	}
	was = option_number(o, a);
	is = option_number(o, b);
	if (o->type == OPTION_WORDS)
		return (is & ~was) != 0;
	if (o->type == OPTION_WORD)
		return rank(o, is) > rank(o, was);
	if (o->type == OPTION_BOOL)
		return was == BOOL_TRUE && is != BOOL_TRUE;
	/* No value is no cap. */
	return (is ? is : UINT64_MAX) > (was ? was : UINT64_MAX);
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool has_file(const struct policy *p, const struct policy_file *f)
{
	for (size_t i = 0; i < p->nfiles; i++) {
		const struct policy_file *g = &p->files[i];

		if (g->access == f->access && same_text(g->path, f->path) &&
		    same_text(g->from, f->from) && same_text(g->collect, f->collect) &&
		    g->size_bytes == f->size_bytes)
			return true;
	}
	return false;
}

static const char *env_of(const struct policy *p, const char *name)
{
	for (size_t i = 0; i < p->nenv; i++)
		if (strcmp(p->env[i].name, name) == 0)
			return p->env[i].value;
	return NULL;
}

static void widened_files(const struct policy *file, const struct policy *flags, struct lines *l)
{
	const struct policy_option *access = option_find("files[].access");

	for (size_t i = 0; i < flags->nfiles; i++) {
		const struct policy_file *f = &flags->files[i];
		const char *other = f->from ? f->from : f->collect;
		char path[64], host[64];

		/* To hide more is to allow less. */
		if (f->access == ACCESS_HIDE || has_file(file, f))
			continue;
		str_escape_into(path, sizeof(path), f->path, strlen(f->path));
		str_escape_into(host, sizeof(host), other ? other : "", other ? strlen(other) : 0);
		add_line(l, "files: %s %s%s%s", option_word_of(access->words, f->access), path,
			 !other	   ? ""
			 : f->from ? " from "
				   : " collected to ",
			 host);
	}
	for (size_t i = 0; i < file->nfiles; i++) {
		char path[100];

		if (file->files[i].access == ACCESS_HIDE && !has_file(flags, &file->files[i]))
			add_line(l, "files: %s is no longer hidden",
				 str_escape_into(path, sizeof(path), file->files[i].path,
						 strlen(file->files[i].path)));
	}
}

/* Whether two rules are the same, wherever they come from. */
static bool same_rule(const struct network_rule *a, const struct network_rule *b)
{
	return a->deny == b->deny && a->protocols == b->protocols && a->intercept == b->intercept &&
	       a->rate_bytes == b->rate_bytes && a->total_bytes == b->total_bytes &&
	       a->nports == b->nports &&
	       memcmp(a->ports, b->ports, a->nports * sizeof(*a->ports)) == 0 &&
	       !a->cidr == !b->cidr &&
	       (!a->cidr || memcmp(a->cidr, b->cidr, sizeof(*a->cidr)) == 0) &&
	       same_text(a->host, b->host) && texts_same(a->methods, b->methods) &&
	       texts_same(a->paths, b->paths);
}

static bool has_rule(const struct policy_network *n, const struct network_rule *r, size_t guess)
{
	/* Flags come after the file: its rules are at the same places. */
	if (guess < n->nrules && same_rule(&n->rules[guess], r))
		return true;
	for (size_t i = 0; i < n->nrules; i++)
		if (same_rule(&n->rules[i], r))
			return true;
	return false;
}

static bool has_secret(const struct policy_network *n, const struct network_secret *s)
{
	for (size_t i = 0; i < n->nsecrets; i++) {
		const struct network_secret *t = &n->secrets[i];

		if (t->place == s->place && same_text(t->env, s->env) &&
		    same_text(t->file, s->file) && same_text(t->value_from, s->value_from) &&
		    same_text(t->name, s->name) && texts_same(t->hosts, s->hosts))
			return true;
	}
	return false;
}

static bool has_publish(const struct policy_network *n, const struct network_publish *e)
{
	for (size_t i = 0; i < n->npublish; i++)
		if (n->publish[i].port == e->port && n->publish[i].host_port == e->host_port &&
		    same_text(n->publish[i].path, e->path))
			return true;
	return false;
}

static void widened_network(const struct policy_network *file, const struct policy_network *flags,
			    struct lines *l)
{
	char text[NETWORK_RULE_TEXT], shown[64];

	for (size_t i = 0; i < flags->nrules; i++)
		if (!flags->rules[i].deny && !has_rule(file, &flags->rules[i], i))
			add_line(l, "network: %.140s", network_rule_text(&flags->rules[i], text));
	/* To deny more is to allow less. */
	for (size_t i = 0; i < file->nrules; i++)
		if (file->rules[i].deny && !has_rule(flags, &file->rules[i], i))
			add_line(l, "network: no longer %.130s",
				 network_rule_text(&file->rules[i], text));
	/* The variable or file; where the value comes from is the caller's business. */
	for (size_t i = 0; i < flags->nsecrets; i++) {
		const struct network_secret *s = &flags->secrets[i];
		const char *name = s->env ? s->env : s->file;

		if (!has_secret(file, s))
			add_line(l, "network.secrets: %s for %.60s%s",
				 str_escape_into(shown, sizeof(shown), name, strlen(name)),
				 s->hosts[0], s->hosts[1] ? " and others" : "");
	}
	for (size_t i = 0; i < flags->npublish; i++) {
		const struct network_publish *e = &flags->publish[i];

		if (has_publish(file, e))
			continue;
		if (e->path)
			add_line(l, "network.publish: port %u at %s", e->port,
				 str_escape_into(shown, sizeof(shown), e->path, strlen(e->path)));
		else if (e->host_port)
			add_line(l, "network.publish: port %u at port %u", e->port, e->host_port);
		else
			add_line(l, "network.publish: port %u", e->port);
	}
}

int policy_widened(const struct policy *file, const struct policy *flags, char lines[][160],
		   size_t max)
{
	struct lines l = {.line = lines, .max = max};

	for (const struct policy_option *o = policy_options; o->key; o++) {
		_cleanup_buf_ struct buf was = BUF_INIT(8192), is = BUF_INIT(8192);
		char old[60], new[60];

		if (strchr(o->key, '[') || !wider(o, file, flags))
			continue;
		option_format(o, file, &was);
		option_format(o, flags, &is);
		add_line(&l, "%s: %s instead of %s", o->key,
			 str_escape_into(new, sizeof(new), is.len ? is.data : "none",
					 is.len ? is.len : 4),
			 str_escape_into(old, sizeof(old), was.len ? was.data : "none",
					 was.len ? was.len : 4));
	}
	widened_files(file, flags, &l);
	widened_network(&file->network, &flags->network, &l);
	/* Values stay out of the log: they may be what the caller's own variables hold. */
	for (size_t i = 0; i < flags->nenv; i++) {
		const char *was = env_of(file, flags->env[i].name);

		if (!was || strcmp(was, flags->env[i].value) != 0)
			add_line(&l, "env: %.100s is %s", flags->env[i].name,
				 was ? "changed" : "added");
	}
	return (int)(l.n < max ? l.n : max);
}
