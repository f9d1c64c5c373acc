/* What the files of `pale audit` share. */
#pragma once

#include "cli/cli.h"

extern const struct cli_command cli_audit_command, cli_audit_show_command, cli_audit_tail_command,
	cli_audit_report_command;

/* Closes lost runs, ending what is left of them; says on stderr what failed. */
void cli_audit_recover(void);
/* The id of the run that the first operand names, or of the last run; a negative code. */
int cli_audit_run(const struct cli_args *args, char ret[PALE_ID_SIZE], struct pale_err *err);
/* Columns of the terminal; 0 if f is none. */
size_t cli_width(FILE *f);
/* status, or that of a failed write to stdout. */
int cli_flushed(int status);
