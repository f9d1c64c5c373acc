/* What the files of `pale audit` share. */
#pragma once

#include <jansson.h>

#include "cli/cli.h"

extern const struct cli_command cli_audit_command, cli_audit_show_command, cli_audit_tail_command,
	cli_audit_report_command;

/* Closes lost runs, killing what is left of them; says on stderr what failed. */
void cli_audit_recover(void);
/* Columns of the terminal; 0 if f is none. */
size_t cli_width(FILE *f);
/* status, or that of a failed write to stdout. */
int cli_flushed(int status);
/* Whether a run's id is of before the given time (as audit_parse_since() makes it). */
bool cli_started_before(const char *id, const char *since);

/* What was blocked, one row a thing: add the events of a run, print, free(). NULL: out of memory.
 */
struct cli_blocked;
struct cli_blocked *cli_blocked_new(void);
void cli_blocked_add(struct cli_blocked *t, const json_t *event);
void cli_blocked_print(struct cli_blocked *t, bool colour, size_t width);
