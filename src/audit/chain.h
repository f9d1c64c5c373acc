/* The lines of a log and the chain that holds them together.
 *
 * A line is one JSON object in ASCII: seq (from 1), time, run, stage, event, the event's own keys
 * in order, prev; then a newline. prev is the SHA-256 of the line before (its bytes without the
 * newline), and for the first line of SHA-256("pale audit 1 <id>"), so that a line belongs to one
 * place in one run's log. */
#pragma once

#include "audit/audit.h"
#include "base/buf.h"

#define AUDIT_LINE_MAX (33u << 20) /* the longest line that is written or read */

void chain_genesis(const char *id, char out[static AUDIT_HASH_SIZE]);
void chain_hash(const void *line, size_t len, char out[static AUDIT_HASH_SIZE]);

struct chain_head {
	uint64_t seq; /* of the last line; 0: none yet */
	char hash[AUDIT_HASH_SIZE];
};

/* Builds the next line, newline included, in out (emptied first). -ENOSPC if it exceeds out->max,
 * -EINVAL if body has a reserved key or cannot be written as JSON, -ENOMEM. head stays as it is. */
int chain_build(const struct chain_head *head, const char *id, const char *time, const char *stage,
		const char *event, const json_t *body, struct buf *out) _must_check_;

/* One parsed line. */
struct chain_line {
	json_t *object; /* owned */
	uint64_t seq;
	const char *time, *run, *stage, *event, *prev; /* within object */
};

/* Parses hostile bytes: NULL, or why they are no line of a log (a constant text). */
const char *chain_parse(const char *bytes, size_t len, struct chain_line *ret);
void chain_line_done(struct chain_line *l);
#define _cleanup_line_ _cleanup_(chain_line_done)
