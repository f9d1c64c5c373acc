/* The node tree and its YAML reader (libyaml's events). Runs in the supervisor before a box exists,
 * with the caller's rights; the text may be hostile (a policy is trusted by its caller, but a
 * malformed one must be refused whole, never half read). Depth, members and size are bounded. */
#include "policy/node.h"

#include <stdarg.h>
#include <string.h>
#include <yaml.h>

#include "base/str.h"

static void node_done(struct node *n)
{
	for (size_t i = 0; i < n->n; i++)
		node_done(&n->members[i]);
	free(n->members);
	free(n->key);
	free(n->text);
}

void node_free(struct node *n)
{
	if (!n)
		return;
	node_done(n);
	free(n);
}

struct node *node_add(struct node *parent)
{
	/* Room grows at 0, 1, 2, 4, 8 ... members. */
	if ((parent->n & (parent->n - 1)) == 0) {
		size_t cap = parent->n ? parent->n * 2 : 1;
		struct node *members = reallocarray(parent->members, cap, sizeof(*members));

		if (!members)
			return NULL;
		parent->members = members;
	}
	parent->members[parent->n] = (struct node){0};
	return &parent->members[parent->n++];
}

static bool any_of(const char *text, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcasecmp(text, words[i]) == 0)
			return true;
	return false;
}

bool node_is_null(const struct node *n)
{
	static const char *const words[] = {"", "~", "null"};

	return n->kind == NODE_SCALAR && n->plain && any_of(n->text, words, ARRAY_SIZE(words));
}

bool node_is_boolean(const struct node *n)
{
	static const char *const words[] = {"true", "false", "yes", "no", "on", "off", "y", "n"};

	return n->kind == NODE_SCALAR && n->plain && any_of(n->text, words, ARRAY_SIZE(words));
}

const struct node *node_member(const struct node *map, const char *key)
{
	for (size_t i = 0; map->kind == NODE_MAP && i < map->n; i++)
		if (strcmp(map->members[i].key, key) == 0)
			return &map->members[i];
	return NULL;
}

int node_err(const char *name, unsigned line, unsigned column, struct pale_err *err,
	     const char *fmt, ...)
{
	char text[400], file[120];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(err, PALE_E_POLICY, "policy", 0, "%s:%u:%u: %s",
		       str_escape_into(file, sizeof(file), name, strlen(name)), line, column, text);
}

int node_check_last(const struct node *parent, const char *name, struct pale_err *err)
{
	const struct node *last = &parent->members[parent->n - 1];

	if (parent->n > NODE_MAX_MEMBERS)
		return node_err(name, last->line ? last->line : last->key_line,
				last->line ? last->column : last->key_column, err,
				"more than %d members", NODE_MAX_MEMBERS);
	for (size_t i = 0; last->key && i + 1 < parent->n; i++)
		if (strcmp(parent->members[i].key, last->key) == 0)
			return node_err(name, last->key_line, last->key_column, err,
					"the key %s was given before, at line %u",
					QUOTED(last->key), parent->members[i].key_line);
	return 0;
}

struct reader {
	yaml_parser_t parser;
	yaml_event_t event; /* the current one, if held */
	bool held;
	const char *name, *text;
	size_t len;
	struct pale_err *err;
};

static int at_mark(struct reader *r, const yaml_mark_t *m, const char *what)
{
	return node_err(r->name, (unsigned)m->line + 1, (unsigned)m->column + 1, r->err, "%s",
			what);
}

/* A byte that cannot be read at all: libyaml gives its offset only. */
static int at_offset(struct reader *r, size_t offset)
{
	unsigned line = 1, column = 1;

	for (size_t i = 0; i < offset && i < r->len; i++) {
		if (r->text[i] == '\n') {
			line++;
			column = 1;
		} else if ((r->text[i] & 0xc0) != 0x80) {
			column++;
		}
	}
	return node_err(r->name, line, column, r->err, "this is not text in UTF-8: %s",
			r->parser.problem ? r->parser.problem : "unreadable");
}

static int next_event(struct reader *r)
{
	const yaml_parser_t *p = &r->parser;

	if (r->held)
		yaml_event_delete(&r->event);
	r->held = false;
	if (yaml_parser_parse(&r->parser, &r->event)) {
		r->held = true;
		return 0;
	}
	if (p->error == YAML_MEMORY_ERROR)
		return err_nomem(r->err, "policy");
	if (p->error == YAML_READER_ERROR)
		return at_offset(r, p->problem_offset);
	return node_err(r->name, (unsigned)p->problem_mark.line + 1,
			(unsigned)p->problem_mark.column + 1, r->err, "this is not YAML: %s%s%s",
			p->context ? p->context : "", p->context ? ", " : "",
			p->problem ? p->problem : "unreadable");
}

/* Takes the current scalar's text over into a string of ours. */
static int take_text(struct reader *r, char **ret)
{
	const char *value = (const char *)r->event.data.scalar.value;
	size_t len = r->event.data.scalar.length;

	if (strlen(value) != len)
		return at_mark(r, &r->event.start_mark, "a NUL byte cannot be part of a text");
	*ret = strdup(value);
	return *ret ? 0 : err_nomem(r->err, "policy");
}

/* What YAML can do and a policy does not need: references that make a small text a large tree, and
 * types that other readers would take otherwise. */
static int refuse_extras(struct reader *r, const yaml_char_t *anchor, const yaml_char_t *tag)
{
	if (anchor)
		return at_mark(r, &r->event.start_mark, "anchors (&name) are not used in policies");
	if (tag)
		return at_mark(r, &r->event.start_mark, "tags (!name) are not used in policies");
	return 0;
}

static int read_node(struct reader *r, struct node *n, unsigned depth);

static int read_map(struct reader *r, struct node *n, unsigned depth)
{
	for (;;) {
		struct node *member;
		int e = next_event(r);

		if (e < 0)
			return e;
		if (r->event.type == YAML_MAPPING_END_EVENT)
			return 0;
		if (r->event.type != YAML_SCALAR_EVENT)
			return at_mark(r, &r->event.start_mark,
				       "a key is a word, not a list, a "
				       "mapping or an alias");
		e = refuse_extras(r, r->event.data.scalar.anchor, r->event.data.scalar.tag);
		if (e < 0)
			return e;
		member = node_add(n);
		if (!member)
			return err_nomem(r->err, "policy");
		member->key_line = (unsigned)r->event.start_mark.line + 1;
		member->key_column = (unsigned)r->event.start_mark.column + 1;
		e = take_text(r, &member->key);
		if (e < 0) {
			n->n--; /* has no key: not a member */
			return e;
		}
		e = node_check_last(n, r->name, r->err);
		if (e >= 0)
			e = next_event(r);
		if (e >= 0)
			e = read_node(r, member, depth + 1);
		if (e < 0)
			return e;
	}
}

static int read_list(struct reader *r, struct node *n, unsigned depth)
{
	for (;;) {
		struct node *member;
		int e = next_event(r);

		if (e < 0)
			return e;
		if (r->event.type == YAML_SEQUENCE_END_EVENT)
			return 0;
		member = node_add(n);
		if (!member)
			return err_nomem(r->err, "policy");
		e = read_node(r, member, depth + 1);
		if (e >= 0)
			e = node_check_last(n, r->name, r->err);
		if (e < 0)
			return e;
	}
}

/* The node that starts with the current event. */
static int read_node(struct reader *r, struct node *n, unsigned depth)
{
	const yaml_event_t *e = &r->event;
	int x;

	n->line = (unsigned)e->start_mark.line + 1;
	n->column = (unsigned)e->start_mark.column + 1;
	if (depth > NODE_MAX_DEPTH)
		return at_mark(r, &e->start_mark, "nested too deeply");
	switch (e->type) {
	case YAML_ALIAS_EVENT:
		return at_mark(r, &e->start_mark, "aliases (*name) are not used in policies");
	case YAML_SCALAR_EVENT:
		n->kind = NODE_SCALAR;
		n->plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
		x = refuse_extras(r, e->data.scalar.anchor, e->data.scalar.tag);
		return x < 0 ? x : take_text(r, &n->text);
	case YAML_MAPPING_START_EVENT:
		n->kind = NODE_MAP;
		x = refuse_extras(r, e->data.mapping_start.anchor, e->data.mapping_start.tag);
		return x < 0 ? x : read_map(r, n, depth);
	case YAML_SEQUENCE_START_EVENT:
		n->kind = NODE_LIST;
		x = refuse_extras(r, e->data.sequence_start.anchor, e->data.sequence_start.tag);
		return x < 0 ? x : read_list(r, n, depth);
	default: return at_mark(r, &e->start_mark, "a value was expected");
	}
}

static int read_document(struct reader *r, struct node *root)
{
	int e = next_event(r); /* the start of the stream */

	if (e >= 0)
		e = next_event(r);
	if (e < 0)
		return e;
	if (r->event.type == YAML_STREAM_END_EVENT)
		return node_err(r->name, 1, 1, r->err,
				"the policy is empty: at least `pale: 1` was expected");
	e = next_event(r);
	if (e >= 0)
		e = read_node(r, root, 0);
	if (e >= 0)
		e = next_event(r); /* the end of the document */
	if (e >= 0)
		e = next_event(r);
	if (e >= 0 && r->event.type != YAML_STREAM_END_EVENT)
		e = at_mark(r, &r->event.start_mark, "a second document: a policy is a single one");
	return e;
}

int node_from_yaml(struct node **ret, const char *text, size_t len, const char *name,
		   struct pale_err *err)
{
	struct reader r = {.name = name, .text = text, .len = len, .err = err};
	_cleanup_node_ struct node *root = NULL;
	int e;

	if (len > NODE_MAX_BYTES)
		return node_err(name, 1, 1, err, "longer than %u bytes", NODE_MAX_BYTES);
	root = calloc(1, sizeof(*root));
	if (!root || !yaml_parser_initialize(&r.parser))
		return err_nomem(err, "policy");
	/* Not left to a byte order mark: UTF-16 would make the same bytes another text. */
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
	e = read_document(&r, root);
	if (r.held)
		yaml_event_delete(&r.event);
	yaml_parser_delete(&r.parser);
	if (e < 0)
		return e;
	*ret = take_ptr(root);
	return 0;
}
