/* Policies for the library's callers: see pale.h. Runs in the caller's process; policy files may be
 * hostile, and are read by src/policy. */
#include "api.h"

#include <string.h>

#include "base/str.h"
#include "plan/source.h"
#include "policy/options.h"
#include "policy/presets.h"

#define STAGE "policy"

const char *pale_version(void)
{
	return PALE_VERSION;
}

int api_take(void *to, size_t to_size, const void *from, const char *what, struct pale_err *err)
{
	size_t size;

	if (!from)
		return 0;
	memcpy(&size, from, sizeof(size));
	/* A later caller's struct may be larger: what this version does not know has to be zero. */
	if (size < sizeof(size) || size > 4096)
		return err_set(err, PALE_E_USAGE, STAGE, 0, "%s.size is not set", what);
	for (size_t i = to_size; i < size; i++)
		if (((const char *)from)[i])
			return err_set(err, PALE_E_USAGE, STAGE, 0,
				       "%s asks for what this version of Pale (%s) does not know",
				       what, PALE_VERSION);
	memcpy(to, from, size < to_size ? size : to_size);
	return 0;
}

int pale_policy_new(struct pale_policy **ret, struct pale_err *err)
{
	NEED_ERR(err);
	struct pale_policy *p = calloc(1, sizeof(*p));
	int r;

	*ret = NULL;
	if (!p)
		return err_nomem(err, STAGE);
	r = policy_new(&p->model, err);
	if (r < 0) {
		free(p);
		return r;
	}
	*ret = p;
	return 0;
}

int pale_policy_copy(struct pale_policy **ret, const struct pale_policy *from, struct pale_err *err)
{
	NEED_ERR(err);
	struct pale_policy *p = calloc(1, sizeof(*p));
	int r;

	*ret = NULL;
	if (!p)
		return err_nomem(err, STAGE);
	*p = *from;
	p->model = NULL;
	r = policy_copy(&p->model, from->model, err);
	if (r < 0) {
		free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void pale_policy_free(struct pale_policy *p)
{
	if (!p)
		return;
	policy_free(p->model);
	free(p);
}

static void add_name(struct pale_policy *p, const char *name)
{
	size_t n = strlen(p->name);

	snprintf(p->name + n, sizeof(p->name) - n, "%s", n ? " + " : "");
	n = strlen(p->name);
	if (n + 5 < sizeof(p->name))
		str_escape_into(p->name + n, sizeof(p->name) - n, name, strlen(name));
}

int pale_policy_load(struct pale_policy *p, const char *name, struct pale_err *err)
{
	NEED_ERR(err);
	int r = policy_load(p->model, name, err);

	if (r < 0)
		return r;
	add_name(p, name);
	return 0;
}

int pale_policy_load_text(struct pale_policy *p, const char *text, size_t len, const char *name,
			  const char *base_dir, bool json, struct pale_err *err)
{
	NEED_ERR(err);
	int r = policy_load_memory(p->model, text, len, name, base_dir, json, err);

	if (r < 0)
		return r;
	add_name(p, name);
	return 0;
}

const char *pale_policy_name(const struct pale_policy *p)
{
	return *p->name ? p->name : "compute";
}

struct check {
	void (*report)(void *arg, bool warning, const char *message);
	void *arg;
	size_t n;
};

static void report_one(const struct pale_err *e, void *data)
{
	struct check *c = data;

	c->n++;
	if (c->report)
		c->report(c->arg, false, e->message);
}

static void warn_of_sources(const struct policy *p, const struct check *c)
{
	for (size_t i = 0; c->report && i < p->nfiles; i++) {
		_cleanup_free_ char *real = NULL;
		struct pale_err err;
		struct stat st;

		if (p->files[i].from && source_find(&p->files[i], &real, &st, &err) < 0)
			c->report(c->arg, true, err.message);
	}
}

int pale_policy_check(const char *name,
		      void (*report)(void *arg, bool warning, const char *message), void *arg,
		      struct pale_err *err)
{
	NEED_ERR(err);
	_cleanup_policy_ struct policy *p = NULL;
	struct check c = {report, arg, 0};
	int r;

	r = policy_new(&p, err);
	if (r >= 0)
		r = policy_load_report(p, name, report_one, &c, err);
	if (r >= 0)
		r = policy_check(p, err);
	/* What is not about a line of the file was not reported yet: it cannot be opened, say. */
	if (r < 0 && c.n == 0)
		report_one(err, &c);
	if (r >= 0)
		warn_of_sources(p, &c);
	return r;
}

void pale_policy_origin(struct pale_policy *p, const char *where)
{
	snprintf(p->origin, sizeof(p->origin), "%s", where ? where : "");
}

static const char *origin(const struct pale_policy *p, const char *otherwise)
{
	return *p->origin ? p->origin : otherwise;
}

int pale_policy_set(struct pale_policy *p, const char *key, const char *value, struct pale_err *err)
{
	NEED_ERR(err);
	return policy_set(p->model, key, value, origin(p, "pale_policy_set()"), err);
}

int pale_policy_read(struct pale_policy *p, const char *from, const char *path,
		     struct pale_err *err)
{
	NEED_ERR(err);
	return policy_add_file(p->model, ACCESS_READ, path, from, NULL, 0,
			       origin(p, "pale_policy_read()"), err);
}

int pale_policy_overlay(struct pale_policy *p, const char *from, const char *path,
			struct pale_err *err)
{
	NEED_ERR(err);
	return policy_add_file(p->model, ACCESS_OVERLAY, path, from, NULL, 0,
			       origin(p, "pale_policy_overlay()"), err);
}

int pale_policy_write(struct pale_policy *p, const char *path, const char *collect,
		      uint64_t size_bytes, struct pale_err *err)
{
	NEED_ERR(err);
	const char *where = origin(p, "pale_policy_write()");
	struct policy_file entry = {0};
	char text[24];

	/* For its bounds. */
	snprintf(text, sizeof(text), "%llu", (unsigned long long)size_bytes);
	if (size_bytes && option_parse(option_find("files[].size"), text, &entry, err) < 0) {
		if (err)
			err_add(err, " (%s)", where);
		return -PALE_E_POLICY;
	}
	return policy_add_file(p->model, ACCESS_WRITE, path, NULL, collect, size_bytes, where, err);
}

int pale_policy_hide(struct pale_policy *p, const char *path, struct pale_err *err)
{
	NEED_ERR(err);
	return policy_add_file(p->model, ACCESS_HIDE, path, NULL, NULL, 0,
			       origin(p, "pale_policy_hide()"), err);
}

int pale_policy_env(struct pale_policy *p, const char *name, const char *value,
		    struct pale_err *err)
{
	NEED_ERR(err);
	return policy_add_env(p->model, name, value, err);
}

int pale_policy_allow(struct pale_policy *p, const char *rule, struct pale_err *err)
{
	NEED_ERR(err);
	return policy_add_rule(p->model, false, rule, origin(p, "pale_policy_allow()"), err);
}

int pale_policy_deny(struct pale_policy *p, const char *rule, struct pale_err *err)
{
	NEED_ERR(err);
	return policy_add_rule(p->model, true, rule, origin(p, "pale_policy_deny()"), err);
}

int pale_policy_secret(struct pale_policy *p, const char *secret, struct pale_err *err)
{
	NEED_ERR(err);
	return policy_add_secret(p->model, secret, origin(p, "pale_policy_secret()"), err);
}

int pale_policy_publish(struct pale_policy *p, const char *port, struct pale_err *err)
{
	NEED_ERR(err);
	return policy_add_publish(p->model, port, origin(p, "pale_policy_publish()"), err);
}

int pale_policy_presets(const char *name, char **ret, struct pale_err *err)
{
	NEED_ERR(err);
	return name ? preset_describe(name, ret, err) : preset_list(ret, err);
}

int pale_policy_json(const struct pale_policy *p, char **ret, struct pale_err *err)
{
	NEED_ERR(err);
	return policy_to_json(p->model, ret, err);
}

int pale_policy_yaml(const struct pale_policy *p, char **ret, struct pale_err *err)
{
	NEED_ERR(err);
	int r = policy_check(p->model, err);

	return r < 0 ? r : policy_to_yaml(p->model, ret, err);
}

int pale_policy_starter(const char *name, char **ret, struct pale_err *err)
{
	NEED_ERR(err);
	return policy_init_text(name, ret, err);
}

int pale_policy_schema(char **ret, struct pale_err *err)
{
	NEED_ERR(err);
	return policy_schema_json(ret, err);
}

int pale_policy_docs(char **ret, struct pale_err *err)
{
	NEED_ERR(err);
	return policy_docs_markdown(ret, err);
}

static const char *unit_of(const struct policy_option *o)
{
	switch (o->type) {
	case OPTION_SIZE: return "SIZE";
	case OPTION_TIME: return "TIME";
	case OPTION_MILLI:
	case OPTION_COUNT: return "COUNT";
	case OPTION_WORDS: return "ITEM";
	default: return "NAME";
	}
}

bool pale_policy_key(size_t index, struct pale_policy_key *ret)
{
	const struct policy_option *o = policy_options;
	size_t used = 0;

	while (o->key && index-- > 0)
		o++;
	if (!o->key)
		return false;
	*ret = (struct pale_policy_key){.key = o->key,
					.flag = o->flag,
					.value = unit_of(o),
					.fallback = o->def,
					.doc = o->doc};
	for (const struct option_word *w = o->words; w && w->word && used < sizeof(ret->words); w++)
		used += (size_t)snprintf(ret->words + used, sizeof(ret->words) - used, "%s%s",
					 used ? "|" : "", w->word);
	return true;
}
