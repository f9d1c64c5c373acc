/* The part of the writer that recovery uses. */
#pragma once

#include "audit/audit.h"

/* A writer on an open log whose lock the caller holds; both descriptors are duplicated (the
 * duplicate shares the lock). The chain goes on after the last line, which must be
 * complete; if it ended the run, audit_free() renews the seal and takes the run out of active/. */
int audit_adopt(const char *id, int dir, int log, struct audit **ret,
		struct pale_err *err) _must_check_;

/* Whether the run has its end in the log. */
bool audit_ended(const struct audit *a);
