/* One error, owned by the caller, of fixed size: nothing to free, it can cross a pipe, and it can
 * be filled in after clone(). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <pale.h>

#include "cleanup.h"

/* Fills in err (if not NULL) and returns -code, so that `return err_set(...)` reads well.
 * sys is an errno value or 0; its text is appended to the message. stage is the name of the folder
 * under src/ in which the failure belongs. */
int err_set(struct pale_err *err, enum pale_code code, const char *stage, int sys, const char *fmt,
	    ...) _printf_(5, 6);

/* Appends to the message of an error that is already set: a remedy, or where it happened. */
void err_add(struct pale_err *err, const char *fmt, ...) _printf_(2, 3);

/* Out of memory, in the given stage. */
int err_nomem(struct pale_err *err, const char *stage);

/* Whether this errno, of a look at what the host has, says something of the host: it has no such
 * thing, or none for this caller, and the next look finds the same. Any other (ENOMEM, EMFILE,
 * EINTR, ...) may be of the moment, and says nothing. */
bool err_is_lasting(int sys);
