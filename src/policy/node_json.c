/* The JSON reader of the node tree. jansson decides whether the text is JSON, and decodes it; since
 * it keeps no positions, a second pass walks over the text, which is known to be valid by then,
 * along with jansson's values. Runs where node.c runs; the text may be hostile. */
#include "policy/node.h"

#include <jansson.h>
#include <string.h>

#include "base/str.h"

struct scan {
	const char *at, *end;
	unsigned line, column;
	const char *name;
	struct pale_err *err;
};

static void step(struct scan *s)
{
	if (s->at >= s->end)
		return;
	if (*s->at == '\n') {
		s->line++;
		s->column = 1;
	} else if ((s->at[1] & 0xc0) != 0x80) {
		/* The text is NUL-terminated, so that at[1] may be looked at. */
		s->column++;
	}
	s->at++;
}

static void skip_blanks(struct scan *s)
{
	while (s->at < s->end && strchr(" \t\r\n", *s->at))
		step(s);
}

static void skip_one(struct scan *s, char c)
{
	skip_blanks(s);
	if (s->at < s->end && *s->at == c)
		step(s);
}

static void skip_string(struct scan *s)
{
	step(s);
	while (s->at < s->end && *s->at != '"') {
		if (*s->at == '\\')
			step(s);
		step(s);
	}
	step(s);
}

static int walk(struct scan *s, json_t *j, struct node *n, unsigned depth);

static int walk_object(struct scan *s, json_t *j, struct node *n, unsigned depth)
{
	const char *key;
	json_t *value;

	step(s);
	/* jansson keeps members in the order of the text. */
	json_object_foreach(j, key, value)
	{
		struct node *member = node_add(n);
		int r;

		if (!member)
			return err_nomem(s->err, "policy");
		skip_blanks(s);
		member->key_line = s->line;
		member->key_column = s->column;
		member->key = strdup(key);
		if (!member->key) {
			n->n--;
			return err_nomem(s->err, "policy");
		}
		skip_string(s);
		skip_one(s, ':');
		r = node_check_last(n, s->name, s->err);
		if (r >= 0)
			r = walk(s, value, member, depth + 1);
		if (r < 0)
			return r;
		skip_one(s, ',');
	}
	skip_one(s, '}');
	return 0;
}

static int walk_array(struct scan *s, json_t *j, struct node *n, unsigned depth)
{
	json_t *value;
	size_t i;

	step(s);
	json_array_foreach(j, i, value)
	{
		struct node *member = node_add(n);
		int r;

		if (!member)
			return err_nomem(s->err, "policy");
		r = walk(s, value, member, depth + 1);
		if (r >= 0)
			r = node_check_last(n, s->name, s->err);
		if (r < 0)
			return r;
		skip_one(s, ',');
	}
	skip_one(s, ']');
	return 0;
}

static int walk(struct scan *s, json_t *j, struct node *n, unsigned depth)
{
	const char *start;

	skip_blanks(s);
	n->line = s->line;
	n->column = s->column;
	if (depth > NODE_MAX_DEPTH)
		return node_err(s->name, s->line, s->column, s->err, "nested too deeply");
	if (json_is_object(j)) {
		n->kind = NODE_MAP;
		return walk_object(s, j, n, depth);
	}
	if (json_is_array(j)) {
		n->kind = NODE_LIST;
		return walk_array(s, j, n, depth);
	}
	n->kind = NODE_SCALAR;
	if (json_is_string(j)) {
		n->text = strdup(json_string_value(j));
		skip_string(s);
	} else {
		/* The number as it was written: 0.1 must not become the nearest double. */
		start = s->at;
		n->plain = true;
		while (s->at < s->end && !strchr(" \t\r\n,]}", *s->at))
			step(s);
		n->text = strndup(start, (size_t)(s->at - start));
	}
	return n->text ? 0 : err_nomem(s->err, "policy");
}

int node_from_json(struct node **ret, const char *text, size_t len, const char *name,
		   struct pale_err *err)
{
	_cleanup_node_ struct node *root = NULL;
	_cleanup_free_ char *copy = NULL;
	char quoted[256];
	struct scan s;
	json_error_t e;
	json_t *j;
	int r;

	if (len > NODE_MAX_JSON)
		return node_err(name, 1, 1, err, "longer than %u bytes", NODE_MAX_JSON);
	/* jansson takes NUL, as a text's end, in places where JSON has none. */
	copy = strndup(text, len);
	root = calloc(1, sizeof(*root));
	if (!copy || !root)
		return err_nomem(err, "policy");
	if (strlen(copy) != len)
		return node_err(name, 1, 1, err, "a NUL byte cannot be part of a policy");
	j = json_loadb(copy, len, JSON_REJECT_DUPLICATES, &e);
	if (!j && json_error_code(&e) == json_error_out_of_memory)
		return err_nomem(err, "policy");
	if (!j)
		return node_err(name, e.line > 0 ? (unsigned)e.line : 1,
				e.column > 0 ? (unsigned)e.column : 1, err, "this is not JSON: %s",
				str_escape_into(quoted, sizeof(quoted), e.text, strlen(e.text)));
	s = (struct scan){copy, copy + len, 1, 1, name, err};
	r = walk(&s, j, root, 0);
	json_decref(j);
	if (r < 0)
		return r;
	*ret = take_ptr(root);
	return 0;
}
