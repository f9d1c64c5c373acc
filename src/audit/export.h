/* Logs for other programs. */
#pragma once

#include <stdio.h>

#include "audit/audit.h"

/* One OpenTelemetry log batch (an ExportLogsServiceRequest in OTLP's JSON encoding, one line, as
 * the collector's file exporter writes it) with all events of a run. 0 or a negative code. */
int audit_export_otlp(FILE *to, const char *id, struct pale_err *err) _must_check_;

/* The lines of the log as they are. */
int audit_export_jsonl(FILE *to, const char *id, struct pale_err *err) _must_check_;
