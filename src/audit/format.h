/* Events as people read them. Everything in a log may come from a box: it is escaped here. */
#pragma once

#include <jansson.h>

#include "audit/events.h"
#include "base/buf.h"
#include "base/clock.h"

/* "15:04:05.123  blocked  network.blocked  address=192.0.2.1 port=443": local time, no newline; at
 * most width columns (0: no limit). */
int audit_format_event(struct buf *out, const json_t *event, bool colour,
		       size_t width) _must_check_;

/* The local form of a time in a log: "2026-01-31 15:04:05"; what is no time is escaped. */
#define AUDIT_LOCAL_TIME CLOCK_LOCAL
const char *audit_local_time(const char *time, char out[static AUDIT_LOCAL_TIME]);

/* Terminal sequences for a severity; "" without colour. */
const char *audit_colour_on(enum audit_severity s, bool colour);
const char *audit_colour_off(bool colour);

/* "1h", "30d", "2w", "2026-01-31", "2026-01-31T10:00:00Z" as a time that compares with those in
 * logs (UTC). 0 or -EINVAL. */
int audit_parse_since(const char *text, char out[static 40]) _must_check_;
