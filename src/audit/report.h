/* One run as a page. */
#pragma once

#include <stdio.h>

#include "audit/audit.h"

/* Writes a self-contained HTML page (no script, nothing loaded from anywhere): what ran, how it
 * ended, a time line, what was blocked, what was used, every event, and what the log proves. */
int audit_report_html(FILE *to, const char *id, struct pale_err *err) _must_check_;
