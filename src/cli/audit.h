/* What the files of `pale audit` share. */
#pragma once

#include <jansson.h>

#include "cli/cli.h"

extern const struct cli_command cli_audit_command, cli_audit_list_command, cli_audit_show_command,
	cli_audit_tail_command, cli_audit_report_command;

/* Closes lost runs, ending what is left of them; says on stderr what failed. */
void cli_audit_recover(void);
/* The id of the run that the first operand names, or of the last run; a negative code. */
int cli_audit_run(const struct cli_args *args, char ret[PALE_ID_SIZE], struct pale_err *err);
/* Columns of the terminal; 0 if f is none. */
size_t cli_width(FILE *f);
/* status, or that of a failed write to stdout. */
int cli_flushed(int status);

/* The colours in which events of this severity are shown everywhere. */
const char *cli_severity_on(enum pale_severity s, bool colour);
const char *cli_severity_off(bool colour);
/* A string; null for NULL. Texts of a log are valid UTF-8, but for one that was tampered with: what
 * is not is escaped. */
json_t *cli_text_or_null(const char *s);
/* Prints o, which it releases, as a line of ASCII. Negative also for NULL. */
int cli_json_line(json_t *o);
