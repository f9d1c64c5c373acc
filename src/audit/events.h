/* What can stand in a log: one row an event. From the row come the severity that lists and colours
 * use, what may follow the end of a run, the size of a line, and docs/audit-log.md. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum audit_severity {
	AUDIT_INFO,
	AUDIT_BLOCKED, /* something was attempted and did not happen */
	AUDIT_LIMIT,   /* a limit was hit */
	AUDIT_ERROR,   /* Pale itself, or the caller's wish, failed */
};

struct audit_event {
	const char *name;
	const char *stage; /* the folder of src/ that writes it */
	enum audit_severity severity;
	unsigned flags;
	const char *keys; /* its own keys, as text for the documentation */
	const char *doc;
};

#define AUDIT_F_WHOLE	  1u /* never cut: if it does not fit, it is an error */
#define AUDIT_F_AFTER_END 2u /* may follow box.end: what a person did with the results later */
#define AUDIT_F_END	  4u /* ends the run */

/* NULL if there is no such event. */
const struct audit_event *audit_event_find(const char *name);
/* All of them, ended by a row without a name. */
extern const struct audit_event audit_events[];

const char *audit_severity_name(enum audit_severity s);
/* Of a name that may be unknown (a log from a later version): AUDIT_INFO then. */
enum audit_severity audit_event_severity(const char *name);

/* docs/audit-log.md. */
int audit_events_markdown(struct buf *out) _must_check_;
