/* From a text to a policy: the node tree is matched against the options table. Runs where policies
 * are read, with the caller's rights. The text may be hostile or broken: it is refused whole, with
 * the place of each error, and the policy is then what it was before. */
#include "policy/policy.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/str.h"
#include "policy/model.h"
#include "policy/node.h"
#include "policy/options.h"
#include "policy/paths.h"

struct loader {
	struct policy *p; /* a copy, thrown away if there is an error */
	const char *name;
	const char *base;
	bool preset; /* it may say network.allow only */
	size_t nerrors;
	struct pale_err *first; /* the caller's: the first error */
	void (*report)(const struct pale_err *e, void *data);
	void *data;
};

enum { MAX_ERRORS = 50 };

/* Notes an error whose message has no place yet. Loading goes on, to find the others. */
static void note(struct loader *l, unsigned line, unsigned column, const struct pale_err *e)
{
	struct pale_err placed;

	if (l->nerrors++ >= MAX_ERRORS)
		return;
	node_err(l->name, line, column, &placed, "%s", e->message);
	placed.code = e->code;
	if (l->nerrors == 1 && l->first)
		*l->first = placed;
	if (l->report)
		l->report(&placed, l->data);
}

static void note_node(struct loader *l, const struct node *n, const struct pale_err *e)
{
	note(l, n->line, n->column, e);
}

static void note_unknown(struct loader *l, const struct node *n, const char *group)
{
	struct pale_err e;

	int entries = str_ends(group, "[]") ? (int)strlen(group) - 2 : -1;

	err_set(&e, PALE_E_POLICY, "policy", 0, "there is no key %s%s%.*s", QUOTED(n->key),
		!*group	       ? ""
		: entries >= 0 ? " in an entry of "
			       : " in ",
		entries >= 0 ? entries : 64, group);
	if (strcmp(n->key, "<<") == 0)
		err_add(&e, ": merge keys are not used in policies");
	else
		option_suggest_key(group, n->key, &e);
	note(l, n->key_line, n->key_column, &e);
}

static void note_expected(struct loader *l, const struct node *n, const struct policy_option *o)
{
	static const char *const kinds[] = {
		[NODE_SCALAR] = "a single value",
		[NODE_MAP] = "a mapping",
		[NODE_LIST] = "a list",
	};
	struct pale_err e;

	err_set(&e, PALE_E_POLICY, "policy", 0, "%s: expected %s", o->key, option_expected(o));
	for (const struct option_word *w = o->words; w && w->word; w++)
		err_add(&e, "%s%s", w == o->words ? " " : ", ", w->word);
	if (node_is_null(n))
		err_add(&e, "; the value is missing");
	else
		err_add(&e, "; not %s", kinds[n->kind]);
	note_node(l, n, &e);
}

/* {hex: "2f746d70ff"}: a text that is not UTF-8. 0 with *ret set, 1 if n is not that, or -ENOMEM.
 */
static int text_of_hex(const struct node *n, char **ret)
{
	static const char digits[] = "0123456789abcdef";
	const struct node *hex = node_member(n, "hex");
	_cleanup_free_ char *text = NULL;
	size_t len;

	if (n->kind != NODE_MAP || n->n != 1 || !hex || hex->kind != NODE_SCALAR)
		return 1;
	len = strlen(hex->text);
	if (len == 0 || len % 2)
		return 1;
	text = malloc(len / 2 + 1);
	if (!text)
		return -ENOMEM;
	for (size_t i = 0; i < len; i += 2) {
		const char *high = strchr(digits, hex->text[i]);
		const char *low = strchr(digits, hex->text[i + 1]);

		if (!high || !low || (high == digits && low == digits))
			return 1;
		text[i / 2] = (char)((high - digits) << 4 | (low - digits));
	}
	text[len / 2] = '\0';
	*ret = take_ptr(text);
	return 0;
}

/* A path or a variable's value: a text as it stands. NULL after an error, which was noted. */
static char *free_text(struct loader *l, const struct node *n, const struct policy_option *o)
{
	struct pale_err e;
	char *text = NULL;
	int r = 1;

	if (n->kind == NODE_SCALAR && !node_is_null(n)) {
		text = strdup(n->text);
		r = text ? 0 : -ENOMEM;
	} else if (n->kind == NODE_MAP) {
		r = text_of_hex(n, &text);
	}
	if (r < 0) {
		err_nomem(&e, "policy");
		note_node(l, n, &e);
	} else if (r > 0 && o->type == OPTION_ENV) {
		err_set(&e, PALE_E_POLICY, "policy", 0, "env: %s: expected a text%s",
			QUOTED(n->key ? n->key : ""),
			node_is_null(n) ? "; the value is missing: for an empty one write \"\""
					: "");
		note_node(l, n, &e);
	} else if (r > 0) {
		note_expected(l, n, o);
	}
	return text;
}

static void load_scalar(struct loader *l, const struct node *n, const struct policy_option *o,
			void *base)
{
	struct pale_err e;

	if (n->kind != NODE_SCALAR || node_is_null(n)) {
		note_expected(l, n, o);
		return;
	}
	/* `user: no`: some readers of YAML take this for a text, others for false. */
	if ((o->type == OPTION_TEXT || o->type == OPTION_TEXTS) && node_is_boolean(n)) {
		err_set(&e, PALE_E_POLICY, "policy", 0,
			"%s: expected %s; %s without quotes may be read as true or false", o->key,
			o->words ? "a word" : option_expected(o), QUOTED(n->text));
		note_node(l, n, &e);
		return;
	}
	if (option_parse(o, n->text, base, &e) < 0)
		note_node(l, n, &e);
}

/* A list, of which each member is read by one(). */
static void load_each(struct loader *l, const struct node *n, const struct policy_option *o,
		      void *base,
		      void (*one)(struct loader *l, const struct node *n,
				  const struct policy_option *o, void *base))
{
	for (size_t i = 0; i < n->n; i++) {
		const struct node *m = &n->members[i];

		if (m->kind == NODE_LIST || node_is_null(m))
			note_expected(l, m, o);
		else
			one(l, m, o, base);
	}
}

/* A path as it stands, in PATHS made absolute. */
static void load_path(struct loader *l, const struct node *n, const struct policy_option *o,
		      void *base)
{
	_cleanup_free_ char *text = free_text(l, n, o), *path = NULL;
	struct pale_err e;
	int r = 0;

	if (!text)
		return;
	if (o->type == OPTION_PATHS)
		r = path_absolute(&path, text, l->base, true, &e);
	if (r >= 0)
		r = option_parse(o, path ? path : text, base, &e);
	if (r < 0)
		note_node(l, n, &e);
}

/* A list in order of preference: the first is taken, all must be words that are known. */
static void load_preference(struct loader *l, const struct node *n, const struct policy_option *o)
{
	if (n->n == 0)
		note_expected(l, n, o);
	for (size_t i = n->n; i-- > 0;)
		load_scalar(l, &n->members[i], o, l->p);
}

static void load_env(struct loader *l, const struct node *n, const struct policy_option *o)
{
	if (n->kind != NODE_MAP) {
		note_expected(l, n, o);
		return;
	}
	for (size_t i = 0; i < n->n; i++) {
		const struct node *m = &n->members[i];
		_cleanup_free_ char *value = free_text(l, m, o);
		struct pale_err e;

		if (value && policy_add_env(l->p, m->key, value, &e) < 0)
			note(l, m->key_line, m->key_column, &e);
	}
}

/* What is not a group, a list of entries or variables. */
static void load_plain(struct loader *l, const struct node *n, const struct policy_option *o,
		       void *base)
{
	bool list = n->kind == NODE_LIST;

	/* `methods: []` in a rule: none, or any? At the top an empty list is what it says. */
	if (list && n->n == 0 && strchr(o->key, '[')) {
		struct pale_err e;

		err_set(&e, PALE_E_POLICY, "policy", 0,
			"%s: the list is empty: leave the key out, or name some", o->key);
		note_node(l, n, &e);
		return;
	}
	switch (o->type) {
	case OPTION_PATH: load_path(l, n, o, base); break;
	case OPTION_PATHS:
		list ? load_each(l, n, o, base, load_path) : load_path(l, n, o, base);
		break;
	case OPTION_WORDS:
		if (!list && !o->single) {
			note_expected(l, n, o);
			break;
		}
		__attribute__((fallthrough));
	case OPTION_TEXTS:
		list ? load_each(l, n, o, base, load_scalar) : load_scalar(l, n, o, base);
		break;
	default: load_scalar(l, n, o, base);
	}
}

/* Whether the entry has each of the list's needed keys; what is missing is noted. */
static void load_needs(struct loader *l, const struct node *n, const struct option_list *list)
{
	for (const char *at = list->needs; at && *at;
	     at += strcspn(at, " "), at += strspn(at, " ")) {
		char key[64];
		struct pale_err e;

		snprintf(key, sizeof(key), "%.*s", (int)strcspn(at, " "), at);
		if (node_member(n, key))
			continue;
		err_set(&e, PALE_E_POLICY, "policy", 0, "`%s` is missing", key);
		note_node(l, n, &e);
	}
}

static void load_row(struct loader *l, const struct node *n, const struct option_list *list,
		     void *row)
{
	for (const struct policy_option *o = policy_options; o->key; o++) {
		struct pale_err e;

		if (o->def && option_in_group(o, list->entries) &&
		    option_parse(o, o->def, row, &e) < 0)
			note_node(l, n, &e);
	}
	for (size_t i = 0; i < n->n; i++) {
		const struct node *m = &n->members[i];
		const struct policy_option *o;
		char key[128];

		snprintf(key, sizeof(key), "%s.%s", list->entries, m->key);
		o = option_find(key);
		if (o && option_in_group(o, list->entries))
			load_plain(l, m, o, row);
		else
			note_unknown(l, m, list->entries);
	}
	load_needs(l, n, list);
}

static void load_entry(struct loader *l, const struct node *n, const struct policy_option *o)
{
	_cleanup_free_ void *row = calloc(1, o->list->size);
	size_t errors = l->nerrors;
	char name[256], where[300];
	struct option_place at = {l->base, where, l->preset};
	struct pale_err e;
	int r = 0;

	if (!row) {
		err_nomem(&e, "policy");
		note_node(l, n, &e);
		return;
	}
	if (n->kind != NODE_MAP) {
		err_set(&e, PALE_E_POLICY, "policy", 0, "%s: expected an entry such as %s", o->key,
			o->list->example);
		note_node(l, n, &e);
		return;
	}
	str_escape_into(name, sizeof(name), l->name, strlen(l->name));
	snprintf(where, sizeof(where), "%s:%u:%u", name, n->line, n->column);
	load_row(l, n, o->list, row);
	if (l->nerrors == errors)
		r = o->list->append(l->p, row, &at, &e);
	option_row_done(o->list, row);
	if (r < 0)
		note_node(l, n, &e);
}

static void load_group(struct loader *l, const struct node *n, const char *group);

static void load_value(struct loader *l, const struct node *n, const struct policy_option *o)
{
	if (l->preset && o->type != OPTION_VERSION && o->list != &list_allow &&
	    strcmp(o->key, "network") != 0) {
		struct pale_err e;

		err_set(&e, PALE_E_POLICY, "policy", 0,
			"%s: a preset says network.allow, and nothing else", o->key);
		note(l, n->key_line, n->key_column, &e);
		return;
	}
	switch (o->type) {
	case OPTION_GROUP:
		if (n->kind == NODE_MAP)
			load_group(l, n, o->key);
		else
			note_expected(l, n, o);
		break;
	case OPTION_LIST:
		if (n->kind != NODE_LIST)
			note_expected(l, n, o);
		for (size_t i = 0; n->kind == NODE_LIST && i < n->n; i++)
			load_entry(l, &n->members[i], o);
		break;
	case OPTION_ENV: load_env(l, n, o); break;
	default:
		if (o->offset == offsetof(struct policy, isolation) && o->type == OPTION_TEXT &&
		    n->kind == NODE_LIST)
			load_preference(l, n, o);
		else
			load_plain(l, n, o, l->p);
	}
}

static void load_group(struct loader *l, const struct node *n, const char *group)
{
	for (size_t i = 0; i < n->n; i++) {
		const struct node *m = &n->members[i];
		const struct policy_option *o;
		char key[128];

		snprintf(key, sizeof(key), "%s%s%s", group, *group ? "." : "", m->key);
		o = option_find(key);
		/* A key of the file has no dot: "limits.wall: 1s" is not limits: {wall: 1s}. */
		if (!o || !option_in_group(o, group) || strchr(m->key, '.'))
			note_unknown(l, m, group);
		else
			load_value(l, m, o);
	}
}

static void load_root(struct loader *l, const struct node *root)
{
	struct pale_err e;

	if (root->kind != NODE_MAP) {
		err_set(&e, PALE_E_POLICY, "policy", 0,
			"expected a mapping that begins with `pale: 1`");
		note_node(l, root, &e);
		return;
	}
	if (!node_member(root, "pale")) {
		err_set(&e, PALE_E_POLICY, "policy", 0,
			"the key `pale: 1` is missing: a policy says which format it is of");
		note_node(l, root, &e);
	}
	load_group(l, root, "");
}

static int load_text(struct policy *p, const char *text, size_t len, const char *name,
		     const char *base, bool json, bool preset,
		     void (*report)(const struct pale_err *e, void *data), void *data,
		     struct pale_err *err)
{
	_cleanup_node_ struct node *root = NULL;
	_cleanup_policy_ struct policy *copy = NULL;
	struct pale_err local = {0}, *first = err ? err : &local;
	struct loader l = {NULL, name, base, preset, 0, first, report, data};
	int r = json ? node_from_json(&root, text, len, name, first)
		     : node_from_yaml(&root, text, len, name, first);

	if (r < 0) {
		if (report)
			report(first, data);
		return r;
	}
	r = policy_copy(&copy, p, err);
	if (r < 0)
		return r;
	l.p = copy;
	load_root(&l, root);
	if (l.nerrors)
		return -(int)first->code;
	policy_swap(p, copy);
	return 0;
}

int policy_load_memory(struct policy *p, const char *text, size_t len, const char *name,
		       const char *base_dir, bool json, struct pale_err *err)
{
	return load_text(p, text, len, name, base_dir, json, false, NULL, NULL, err);
}

int policy_load_preset(struct policy *p, const char *text, size_t len, const char *name,
		       const char *base_dir, struct pale_err *err)
{
	return load_text(p, text, len, name, base_dir, false, true, NULL, NULL, err);
}

/* The absolute directory, without symbolic links, that relative paths of the file count from. */
static int base_of(const char *path, char **ret, struct pale_err *err)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");

	if (!dir)
		return err_nomem(err, "policy");
	*ret = realpath(dir, NULL);
	if (!*ret)
		return err_set(err, PALE_E_SYSTEM, "policy", errno, "cannot follow %s",
			       QUOTED(dir));
	return 0;
}

static int load_file(struct policy *p, const char *path,
		     void (*report)(const struct pale_err *e, void *data), void *data,
		     struct pale_err *err)
{
	bool standard = strcmp(path, "-") == 0;
	_cleanup_buf_ struct buf text = BUF_INIT(NODE_MAX_BYTES);
	_cleanup_free_ char *base = NULL;
	_cleanup_close_ int fd = -1;
	struct stat st;
	int r;

	fd = standard ? fcntl(0, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return err_set(err, errno == ENOENT ? PALE_E_NOTFOUND : PALE_E_SYSTEM, "policy",
			       errno, "cannot open the policy %s", QUOTED(path));
	r = buf_read_fd(&text, fd);
	if (r == -ENOSPC)
		return err_set(err, PALE_E_POLICY, "policy", 0, "%s is longer than %u bytes",
			       QUOTED(path), NODE_MAX_BYTES);
	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, "policy", -r, "cannot read the policy %s",
			       QUOTED(path));
	/* A pipe (`-p <(...)`) has no directory of its own. */
	if (fstat(fd, &st) < 0)
		return err_set(err, PALE_E_SYSTEM, "policy", errno, "cannot examine %s",
			       QUOTED(path));
	r = base_of(S_ISREG(st.st_mode) && !standard ? path : ".", &base, err);
	if (r < 0)
		return r;
	return load_text(p, text.data ? text.data : "", text.len,
			 standard ? "standard input" : path, base, str_ends(path, ".json"), false,
			 report, data, err);
}

static int load_shipped(struct policy *p, const char *name,
			void (*report)(const struct pale_err *e, void *data), void *data,
			struct pale_err *err)
{
	_cleanup_free_ char *base = NULL;
	const char *best = NULL;
	size_t distance = 3;
	int r;

	for (const struct policy_shipped *s = policy_shipped; s->name; s++) {
		size_t d = str_distance(name, s->name, distance);

		if (d == 0) {
			r = base_of(".", &base, err);
			return r < 0 ? r
				     : load_text(p, s->text, strlen(s->text), name, base, false,
						 false, report, data, err);
		}
		if (d < distance) {
			distance = d;
			best = s->name;
		}
	}
	err_set(err, PALE_E_NOTFOUND, "policy", 0, "no policy named %s is shipped", QUOTED(name));
	if (access(name, F_OK) == 0) {
		err_add(err, "; for the file of that name write ./NAME");
	} else if (best) {
		err_add(err, ": did you mean %s?", best);
	} else {
		for (const struct policy_shipped *s = policy_shipped; s->name; s++)
			err_add(err, "%s %s", s == policy_shipped ? "; there are" : ",", s->name);
		err_add(err, "; a file's name has a slash or a dot in it, as ./NAME");
	}
	return -PALE_E_NOTFOUND;
}

int policy_load_report(struct policy *p, const char *name,
		       void (*report)(const struct pale_err *e, void *data), void *data,
		       struct pale_err *err)
{
	if (strcmp(name, "-") != 0 && !strpbrk(name, "/."))
		return load_shipped(p, name, report, data, err);
	return load_file(p, name, report, data, err);
}

int policy_load(struct policy *p, const char *name, struct pale_err *err)
{
	return policy_load_report(p, name, NULL, NULL, err);
}
