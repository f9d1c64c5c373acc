/* The policy as an object: made, copied, changed by flags, written as canonical JSON, hashed. Runs
 * in the supervisor and the command line with the caller's rights; values may come from hostile
 * texts and are checked by their rows in the options table. */
#include "policy/policy.h"

#include <limits.h>
#include <sha256.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "policy/model.h"
#include "policy/options.h"
#include "policy/paths.h"

static void file_done(struct policy_file *f)
{
	free(f->path);
	free(f->from);
	free(f->collect);
	free(f->where);
}

void policy_free(struct policy *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->nfiles; i++)
		file_done(&p->files[i]);
	for (size_t i = 0; i < p->nenv; i++) {
		free(p->env[i].name);
		free(p->env[i].value);
	}
	free(p->files);
	free(p->env);
	free(p->isolation);
	free(p->image);
	free(p->user);
	texts_free(p->session.imports);
	network_done(&p->network);
	free(p);
}

void policy_swap(struct policy *a, struct policy *b)
{
	struct policy t = *a;

	*a = *b;
	*b = t;
}

int policy_new(struct policy **ret, struct pale_err *err)
{
	_cleanup_policy_ struct policy *p = calloc(1, sizeof(*p));

	if (!p)
		return err_nomem(err, "policy");
	for (const struct policy_option *o = policy_options; o->key; o++) {
		int r = 0;

		if (o->def && !strchr(o->key, '['))
			r = option_parse(o, o->def, p, err);
		if (r < 0)
			return r;
	}
	*ret = take_ptr(p);
	return 0;
}

int policy_grow(void *array, size_t n, size_t size)
{
	void *old, *new;

	memcpy(&old, array, sizeof(old));
	if ((n & (n - 1)) != 0)
		return 0;
	new = reallocarray(old, n ? n * 2 : 1, size);
	if (!new)
		return -ENOMEM;
	memcpy(array, &new, sizeof(new));
	return 0;
}

static int copy_text(char **ret, const char *text)
{
	*ret = text ? strdup(text) : NULL;
	return text && !*ret ? -ENOMEM : 0;
}

static int append_copy(struct policy *p, const struct policy_file *f)
{
	struct policy_file c = {.access = f->access, .size_bytes = f->size_bytes};

	if (policy_grow(&p->files, p->nfiles, sizeof(*p->files)) < 0 ||
	    copy_text(&c.path, f->path) < 0 || copy_text(&c.from, f->from) < 0 ||
	    copy_text(&c.collect, f->collect) < 0 || copy_text(&c.where, f->where) < 0) {
		file_done(&c);
		return -ENOMEM;
	}
	p->files[p->nfiles++] = c;
	return 0;
}

int policy_copy(struct policy **ret, const struct policy *from, struct pale_err *err)
{
	_cleanup_policy_ struct policy *p = calloc(1, sizeof(*p));

	if (!p)
		return err_nomem(err, "policy");
	*p = *from;
	p->isolation = p->image = p->user = NULL;
	p->files = NULL;
	p->env = NULL;
	p->nfiles = p->nenv = 0;
	p->network = (struct policy_network){0};
	p->session.imports = NULL;
	if (network_copy(&p->network, &from->network) < 0 ||
	    texts_copy(&p->session.imports, from->session.imports) < 0)
		return err_nomem(err, "policy");
	if (copy_text(&p->isolation, from->isolation) < 0 ||
	    copy_text(&p->image, from->image) < 0 || copy_text(&p->user, from->user) < 0)
		return err_nomem(err, "policy");
	for (size_t i = 0; i < from->nfiles; i++)
		if (append_copy(p, &from->files[i]) < 0)
			return err_nomem(err, "policy");
	for (size_t i = 0; i < from->nenv; i++) {
		int r = policy_add_env(p, from->env[i].name, from->env[i].value, err);

		if (r < 0)
			return r;
	}
	*ret = take_ptr(p);
	return 0;
}

/* The path in the box that an entry means. from: the host's path, absolute already, or NULL. */
static int target_of(const struct file_request *q, const char *from, const char *collect,
		     char **ret, struct pale_err *err)
{
	const char *same = from ? from : collect;

	if (q->path && q->from && *q->path != '/')
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "%s: with `from`, the path in the box must be absolute",
			       QUOTED(q->path));
	if (q->path)
		return path_absolute(ret, q->path, q->base, false, err);
	if (!same)
		return err_set(err, PALE_E_POLICY, "policy", 0, "`path` is missing");
	if (path_has_dotdot(same))
		return path_without_dotdot(ret, same, err);
	return path_absolute(ret, same, q->base, false, err);
}

int policy_append_file(struct policy *p, const struct file_request *q, struct pale_err *err)
{
	struct policy_file f = {.access = q->access, .size_bytes = q->size_bytes};
	bool shows = q->access == ACCESS_READ || q->access == ACCESS_OVERLAY;
	const char *from = q->from;
	int r = 0;

	if (p->nfiles >= POLICY_MAX_FILES)
		return err_set(err, PALE_E_POLICY, "policy", 0, "more than %d entries of `files`",
			       POLICY_MAX_FILES);
	if (!shows && from)
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "`from` belongs to the access read or overlay%s",
			       q->access == ACCESS_WRITE ? ": a directory with the access write "
							   "begins empty"
							 : "");
	if (q->access != ACCESS_WRITE && (q->collect || q->size_bytes))
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "`%s` belongs to the access write only",
			       q->collect ? "collect" : "size");
	if (shows && !from)
		from = q->path;
	if (from)
		r = path_absolute(&f.from, from, q->base, true, err);
	if (r >= 0 && q->collect)
		r = path_absolute(&f.collect, q->collect, q->base, true, err);
	if (r >= 0)
		r = target_of(q, f.from, f.collect, &f.path, err);
	if (r >= 0)
		r = path_check_target(f.path, q->access, err);
	if (r >= 0 && f.from)
		r = path_check_source(f.from, err);
	if (r >= 0 && (copy_text(&f.where, q->where ? q->where : "files") < 0 ||
		       policy_grow(&p->files, p->nfiles, sizeof(*p->files)) < 0))
		r = err_nomem(err, "policy");
	if (r < 0) {
		file_done(&f);
		return r;
	}
	p->files[p->nfiles++] = f;
	return 0;
}

int policy_at_place(struct pale_err *err, const char *where, int r)
{
	char text[sizeof(err->message)];

	if (!err || !where)
		return r;
	memcpy(text, err->message, sizeof(text));
	return err_set(err, err->code, "policy", 0, "%.100s: %.380s", where, text);
}

int policy_add_file(struct policy *p, enum policy_access access, const char *path, const char *from,
		    const char *collect, uint64_t size_bytes, const char *where,
		    struct pale_err *err)
{
	_cleanup_free_ char *cwd = getcwd(NULL, 0);
	struct file_request q = {access, path, from, collect, size_bytes, cwd, where};
	int r;

	if (!cwd)
		return err_set(err, PALE_E_SYSTEM, "policy", errno,
			       "cannot tell the working directory");
	r = policy_append_file(p, &q, err);
	return r < 0 ? policy_at_place(err, where, r) : 0;
}

static bool valid_name(const char *name)
{
	static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

	return *name && !(*name >= '0' && *name <= '9') && name[strspn(name, set)] == '\0';
}

int policy_add_env(struct policy *p, const char *name, const char *value, struct pale_err *err)
{
	_cleanup_free_ char *n = NULL, *v = NULL;

	if (!valid_name(name))
		return err_set(
			err, PALE_E_POLICY, "policy", 0,
			"env: %s is not a variable's name: letters, digits and _, no digit first",
			QUOTED(name));
	if (str_starts(name, "PALE_"))
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "env: %s: names beginning with PALE_ are Pale's own", QUOTED(name));
	if (strlen(name) + strlen(value) + 2 > POLICY_MAX_VARIABLE)
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "env: %s is longer than the kernel takes (%d bytes)", QUOTED(name),
			       POLICY_MAX_VARIABLE);
	v = strdup(value);
	if (!v)
		return err_nomem(err, "policy");
	for (size_t i = 0; i < p->nenv; i++) {
		if (strcmp(p->env[i].name, name) == 0) {
			free(p->env[i].value);
			p->env[i].value = take_ptr(v);
			return 0;
		}
	}
	if (p->nenv >= POLICY_MAX_ENV)
		return err_set(err, PALE_E_POLICY, "policy", 0, "env: more than %d variables",
			       POLICY_MAX_ENV);
	n = strdup(name);
	if (!n || policy_grow(&p->env, p->nenv, sizeof(*p->env)) < 0)
		return err_nomem(err, "policy");
	p->env[p->nenv++] = (struct policy_env){take_ptr(n), take_ptr(v)};
	return 0;
}

/* A list on the command line: "memory,cpus". All of it or nothing. */
static int set_words(struct policy *p, const struct policy_option *o, const char *value,
		     struct pale_err *err)
{
	_cleanup_policy_ struct policy *changed = NULL;
	_cleanup_free_ char *words = strdup(value);
	char *save = NULL;
	int r = policy_copy(&changed, p, err);

	if (!words)
		r = err_nomem(err, "policy");
	for (char *w = r < 0 ? NULL : strtok_r(words, ", ", &save); w && r >= 0;
	     w = strtok_r(NULL, ", ", &save))
		r = option_parse(o, w, changed, err);
	if (r >= 0)
		policy_swap(p, changed);
	return r;
}

int policy_set(struct policy *p, const char *key, const char *value, const char *where,
	       struct pale_err *err)
{
	const struct policy_option *o = option_find(key);
	const char *dot = strrchr(key, '.');
	char group[64] = "";
	int r;

	if (str_starts(key, "env.")) {
		r = policy_add_env(p, key + 4, value, err);
		return r < 0 ? policy_at_place(err, where, r) : 0;
	}
	if (!o || strchr(key, '[')) {
		if (dot && (size_t)(dot - key) < sizeof(group))
			snprintf(group, sizeof(group), "%.*s", (int)(dot - key), key);
		err_set(err, PALE_E_POLICY, "policy", 0, "there is no key %s", QUOTED(key));
		option_suggest_key(group, dot ? dot + 1 : key, err);
		return policy_at_place(err, where, -PALE_E_POLICY);
	}
	if (o->type == OPTION_LIST)
		r = err_set(err, PALE_E_POLICY, "policy", 0, "%s cannot be set as one text: use %s",
			    o->key, o->list->flags);
	else if (o->type == OPTION_ENV)
		r = err_set(err, PALE_E_POLICY, "policy", 0,
			    "env cannot be set as one text: set env.NAME=VALUE");
	else if (o->type == OPTION_WORDS || o->type == OPTION_TEXTS)
		r = set_words(p, o, value, err);
	else
		r = option_parse(o, value, p, err);
	return r < 0 ? policy_at_place(err, where, r) : 0;
}

/* A text as JSON; what is not UTF-8 as {"hex": "..."}, which the loader takes back. */
static json_t *json_text(const struct policy_option *o, const char *text)
{
	size_t len = strlen(text);
	_cleanup_buf_ struct buf hex = BUF_INIT(2 * len + 1);
	uint64_t number;

	if (o->numbers && num_parse_u64(text, UINT32_MAX, &number) == 0)
		return json_integer((json_int_t)number);
	if (str_utf8_prefix(text, len) == len)
		return json_string(text);
	for (size_t i = 0; i < len; i++)
		buf_addf(&hex, "%02x", (unsigned char)text[i]);
	return hex.failed ? NULL : json_pack("{s:s}", "hex", hex.data);
}

static json_t *json_option(const struct policy_option *o, const void *base)
{
	_cleanup_buf_ struct buf b = BUF_INIT(8192);
	const char *text;
	char **texts;
	json_t *list;

	switch (o->type) {
	case OPTION_VERSION: return json_integer(1);
	case OPTION_BOOL: return json_boolean(option_number(o, base) == BOOL_TRUE);
	case OPTION_COUNT: return json_integer((json_int_t)option_number(o, base));
	case OPTION_TEXT:
	case OPTION_PATH:
		memcpy(&text, (const char *)base + o->offset, sizeof(text));
		return json_text(o, text ? text : "");
	case OPTION_TEXTS:
	case OPTION_PATHS:
		memcpy(&texts, (const char *)base + o->offset, sizeof(texts));
		list = json_array();
		for (; texts && *texts; texts++)
			if (json_array_append_new(list, json_text(o, *texts)) < 0) {
				json_decref(list);
				return NULL;
			}
		return list;
	case OPTION_WORDS:
		list = json_array();
		for (const struct option_word *w = o->words; w->word; w++)
			if ((option_number(o, base) & w->value) &&
			    json_array_append_new(list, json_string(w->word)) < 0) {
				json_decref(list);
				return NULL;
			}
		return list;
	default:
		option_format(o, base, &b);
		return b.failed ? NULL : json_string(b.data ? b.data : "");
	}
}

static json_t *json_entry(const struct option_list *list, const void *row)
{
	json_t *entry = json_object();
	int r = 0;

	for (const struct policy_option *o = policy_options; o->key; o++)
		if (option_in_group(o, list->entries) && option_given(o, row))
			r |= json_object_set_new(entry, option_name(o), json_option(o, row));
	if (r == 0)
		return entry;
	json_decref(entry);
	return NULL;
}

int policy_entry_json(const struct policy *p, const struct option_list *list, size_t i, char **ret)
{
	_cleanup_free_ void *row = calloc(1, list->size);
	json_t *j = row && list->view(p, i, row) == 0 ? json_entry(list, row) : NULL;

	*ret = j ? json_dumps(j, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
	json_decref(j);
	if (row)
		option_row_done(list, row);
	return *ret ? 0 : -ENOMEM;
}

static json_t *json_list(const struct policy *p, const struct option_list *list)
{
	_cleanup_free_ void *row = malloc(list->size);
	json_t *j = json_array();
	int r = row ? 0 : -1;

	for (size_t i = 0; r == 0 && i < list->count(p); i++) {
		memset(row, 0, list->size);
		r = list->view(p, i, row);
		if (r == 0)
			r = json_array_append_new(j, json_entry(list, row));
		option_row_done(list, row);
	}
	if (r == 0)
		return j;
	json_decref(j);
	return NULL;
}

static json_t *json_env(const struct policy *p, const struct policy_option *env)
{
	json_t *j = json_object();

	for (size_t i = 0; i < p->nenv; i++) {
		if (json_object_set_new(j, p->env[i].name, json_text(env, p->env[i].value)) < 0) {
			json_decref(j);
			return NULL;
		}
	}
	return j;
}

static json_t *json_group(const struct policy *p, const char *group)
{
	json_t *j = json_object();
	int r = 0;

	for (const struct policy_option *o = policy_options; o->key; o++) {
		if (!option_in_group(o, group) ||
		    (*group && o->type == OPTION_GROUP && !option_group_given(o, p)))
			continue;
		if (o->type == OPTION_GROUP)
			r |= json_object_set_new(j, option_name(o), json_group(p, o->key));
		else if (o->type == OPTION_LIST)
			r |= json_object_set_new(j, option_name(o), json_list(p, o->list));
		else if (o->type == OPTION_ENV)
			r |= json_object_set_new(j, o->key, json_env(p, o));
		else if (option_shown(o, p))
			r |= json_object_set_new(j, option_name(o), json_option(o, p));
	}
	if (r == 0)
		return j;
	json_decref(j);
	return NULL;
}

static int group_to_json(const struct policy *p, const char *group, char **ret,
			 struct pale_err *err)
{
	json_t *j = json_group(p, group);
	char *text = j ? json_dumps(j, JSON_SORT_KEYS | JSON_COMPACT) : NULL;

	json_decref(j);
	if (!text)
		return err_nomem(err, "policy");
	*ret = text;
	return 0;
}

int policy_to_json(const struct policy *p, char **ret, struct pale_err *err)
{
	return group_to_json(p, "", ret, err);
}

int policy_network_to_json(const struct policy *p, char **ret, struct pale_err *err)
{
	return group_to_json(p, "network", ret, err);
}

/* What is cut in the middle of a character is of no use to anybody either. */
static int add_place(json_t *list, const char *where)
{
	if (!where)
		where = "network";
	return json_array_append_new(
		list, json_stringn_nocheck(where, str_utf8_prefix(where, strlen(where))));
}

int policy_network_places(const struct policy_network *n, char **ret, struct pale_err *err)
{
	json_t *list = json_array();
	int r = 0;

	for (size_t i = 0; i < n->nrules; i++)
		r |= add_place(list, n->rules[i].where);
	for (size_t i = 0; i < n->nsecrets; i++)
		r |= add_place(list, n->secrets[i].where);
	*ret = r == 0 ? json_dumps(list, JSON_COMPACT) : NULL;
	json_decref(list);
	return *ret ? 0 : err_nomem(err, "policy");
}

int policy_network_take_places(struct policy_network *n, const json_t *places)
{
	if (json_array_size(places) != n->nrules + n->nsecrets)
		return -EINVAL;
	for (size_t i = 0; i < n->nrules + n->nsecrets; i++) {
		char **where =
			i < n->nrules ? &n->rules[i].where : &n->secrets[i - n->nrules].where;
		const char *place = json_string_value(json_array_get(places, i));
		char *copy = place ? strdup(place) : NULL;

		if (!copy)
			return place ? -ENOMEM : -EINVAL;
		free(*where);
		*where = copy;
	}
	return 0;
}

int policy_digest(const struct policy *p, char ret[static 65], struct pale_err *err)
{
	_cleanup_free_ char *text = NULL;
	int r = policy_to_json(p, &text, err);

	if (r < 0)
		return r;
	SHA256Data((const uint8_t *)text, strlen(text), ret);
	return 0;
}
