/* Names of sessions: a symbolic link to the run's id in the state directory, names/NAME -> ID, that
 * only one running session can have. */
#pragma once

#include <stdbool.h>

#include "audit/state.h"
#include "base/err.h"

/* Letters, digits, `_`, `-` and `.`, a letter or digit first, at most 64; nothing that could be an
 * id, or `last`. */
bool session_name_valid(const char *name);
/* Takes it for the run. PALE_E_CONFLICT: a running session has it. */
int session_name_take(const char *name, const char *id, struct pale_err *err) _must_check_;
/* Gives it back, if it is still this run's. */
void session_name_drop(const char *name, const char *id);
/* The id behind it; whether that still runs is not looked at. PALE_E_NOTFOUND. */
int session_name_find(const struct audit_state *s, const char *name, char ret[static AUDIT_ID_SIZE],
		      struct pale_err *err) _must_check_;
