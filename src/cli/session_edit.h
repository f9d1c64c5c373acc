/* Lines that a person types: edited, completed, remembered, pasted. Over libedit. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct session_edit; /* opaque */

/* What the part of the line before the cursor can become. Texts may come from a box. */
struct session_matches {
	char **texts;
	size_t n;
	size_t start; /* what they stand for begins at this character of the line */
};

struct session_edit_config {
	const char *history; /* the file's name in Pale's state directory of the user; or NULL */
	const char *more;    /* the prompt of further lines */
	int signals;	     /* a signalfd of SIGINT and those that end us */
	/* cursor: a number of characters. matches is empty, and freed by the caller; texts are
	 * malloc'ed. */
	void (*complete)(void *arg, const char *line, size_t cursor,
			 struct session_matches *matches);
	/* What is known of the name at the cursor, for the caller to free; or NULL. */
	char *(*inspect)(void *arg, const char *line, size_t cursor);
	void *arg;
};

enum session_edit_got {
	EDIT_LINE,
	EDIT_PASTED,	/* one line or several, more of the same paste follow */
	EDIT_CANCELLED, /* Ctrl-C */
	EDIT_END,	/* Ctrl-D in an empty line, or the terminal is gone */
	EDIT_SIGNAL,	/* one that ends us */
};

int session_edit_new(const struct session_edit_config *config, struct session_edit **ret,
		     struct pale_err *err) _must_check_;
void session_edit_free(struct session_edit *e);
/* *ret: without its last newline, valid until the next call. */
enum session_edit_got session_edit_read(struct session_edit *e, const char *prompt,
					const char **ret);
/* Text for people below the prompt, what a terminal could obey left out. */
void session_edit_print(const char *text);
