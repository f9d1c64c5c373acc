/* Which interpreter runs a piece of code: by language, by a script's #! line, by its suffix. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define INTERPRETER_MAX_ARGS 4

/* Constants only (and the caller's own code or script): nothing to free. */
struct interpreter {
	const char *name; /* "python" */
	const char
		*argv[INTERPRETER_MAX_ARGS + 1]; /* NULL-terminated; more arguments go after it */
	size_t argc;
};

/* argv for code given as text: {"python3", "-c", code}. */
int interpreter_for_code(const char *lang, const char *code, struct interpreter *ret,
			 struct pale_err *err) _must_check_;
/* argv for code on standard input: {"python3", "-"}. */
int interpreter_for_stdin(const char *lang, struct interpreter *ret,
			  struct pale_err *err) _must_check_;

/* argv for a script on disk: {script} if it is executable and has a #! line or is a program, else
 * by its #! line's language, else by its suffix: {"python3", script}. PALE_E_NOTFOUND: there is no
 * such file; PALE_E_USAGE: nothing says how to run it. */
int interpreter_for_script(const char *script, struct interpreter *ret,
			   struct pale_err *err) _must_check_;

/* Whether a word on the command line is meant as a script: it has a known suffix, or a slash, and
 * is a regular file. */
bool interpreter_is_script(const char *word);

/* "python, node, bash, sh, ...", for messages and help. */
const char *interpreter_langs(void);
