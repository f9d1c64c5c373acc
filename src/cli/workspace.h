/* What `pale diff`, `apply` and `discard` share. */
#pragma once

#include "cli/cli.h"

extern const struct cli_command cli_diff_command, cli_apply_command, cli_discard_command;

/* Operands: [RUN] [PATH...]. The first is a run if it reads like one (last, @, @N, or at least four
 * characters of an id) and there is one; "./" before a path prevents it. *ret_run is NULL without
 * one, or id; the rest goes into o. */
int cli_workspace(const struct cli_args *args, char id[PALE_ID_SIZE], const char **ret_run,
		  struct pale_workspace_options *o, struct pale_err *err) _must_check_;
