/* The part of the writer that recovery uses. */
#pragma once

#include "audit/audit.h"

/* A writer on an open log whose lock the caller holds; both descriptors are duplicated (the
 * duplicate shares the lock). The chain goes on after the last line, which must be complete. */
int audit_adopt(const char *id, int dir, int log, struct audit **ret,
		struct pale_err *err) _must_check_;
