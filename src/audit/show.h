/* One run as people read it. */
#pragma once

#include <stdio.h>

#include "audit/audit.h"

struct audit_show {
	bool events;  /* every event, one a line */
	bool blocked; /* only what was blocked and limits: a table, or with events each event */
	bool json;    /* the events as JSON lines */
	bool colour;
	size_t width; /* columns; 0: no limit */
};

/* *ret_shown: how many events of those that were asked for (events, blocked, json). */
int audit_show(const char *id, const struct audit_show *how, FILE *to, uint64_t *ret_shown,
	       struct pale_err *err) _must_check_;
