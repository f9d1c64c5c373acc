/* Strings that may come from a hostile place: escaping for people, and small helpers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"

/* Appends s with every byte that a terminal could obey, quotes, backslashes and invalid UTF-8
 * written as C escapes (\n, \x1b, \"), so that it can stand between quotes in a message. */
int str_escape(struct buf *b, const char *s, size_t len);

/* The same into a fixed buffer, cut with "..." where it does not fit; returns out. */
const char *str_escape_into(char *out, size_t size, const char *s, size_t len);

/* A quoted copy in a fixed-size value, for use as a printf argument: "%s", QUOTED(name). */
struct str_quoted {
	char text[160];
};
struct str_quoted str_quote(const char *s);
#define QUOTED(s) (str_quote(s).text)

/* The length of the longest prefix that is valid UTF-8 (no surrogates, no overlong forms). */
size_t str_utf8_prefix(const char *s, size_t len);

bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);

/* Edit distance (insertions, deletions, exchanges, swaps), at most limit + 1; for suggestions. */
size_t str_distance(const char *a, const char *b, size_t limit);
