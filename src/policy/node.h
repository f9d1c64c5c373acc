/* A tree of mappings, lists and scalars in which everything knows its line and column: what YAML
 * and JSON texts are read into before anything looks at their meaning. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define NODE_MAX_BYTES	 (256u << 10) /* of a file, and of YAML */
#define NODE_MAX_JSON	 (4u << 20)   /* canonical texts have everything written out */
#define NODE_MAX_DEPTH	 8
#define NODE_MAX_MEMBERS 2048 /* of one mapping or list */

enum node_kind { NODE_SCALAR, NODE_MAP, NODE_LIST };

struct node {
	enum node_kind kind;
	bool plain;	       /* a scalar without quotes: may be a number, a boolean or null */
	unsigned line, column; /* from 1; columns count characters */
	char *key;	       /* of a member of a mapping; NULL otherwise */
	unsigned key_line, key_column;
	char *text; /* of a scalar: UTF-8 without NUL */
	struct node *members;
	size_t n;
};

/* Reads one document. name is shown in messages ("name:line:column: ..."). Anchors, aliases, tags,
 * duplicate keys, several documents and NUL are refused. Hostile input is expected. */
int node_from_yaml(struct node **ret, const char *text, size_t len, const char *name,
		   struct pale_err *err) _must_check_;
int node_from_json(struct node **ret, const char *text, size_t len, const char *name,
		   struct pale_err *err) _must_check_;
void node_free(struct node *n);
static inline void node_freep(struct node **n)
{
	node_free(*n);
}
#define _cleanup_node_ _cleanup_(node_freep)

/* Null, or one of the words that some readers of YAML take for a boolean. */
bool node_is_null(const struct node *n);
bool node_is_boolean(const struct node *n);
const struct node *node_member(const struct node *map, const char *key);

/* For the two readers. Adds an empty member; NULL when there is no memory. The pointer is good
 * until the next addition to the same parent. */
struct node *node_add(struct node *parent);
/* -EEXIST if the last member's key is there already, -E2BIG if there are too many members. */
int node_check_last(const struct node *parent, const char *name, struct pale_err *err) _must_check_;
int node_err(const char *name, unsigned line, unsigned column, struct pale_err *err,
	     const char *fmt, ...) _printf_(5, 6);
