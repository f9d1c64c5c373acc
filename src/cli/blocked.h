/* What was blocked, in a line for people. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* The first of a result's `blocked`, why, and how many more there are of the n in all, to stderr.
 * id: of the run. */
void cli_print_blocked(const json_t *blocked, uint64_t n, const char *id);

/* A result's `hints`, to stderr: of refusals that only the program heard of, and of limits, the
 * rule, and what changes it. */
void cli_print_hints(const json_t *result);

/* A text of an object, or "". */
const char *cli_string_at(const json_t *o, const char *key);
/* Fit for a terminal as it is. */
bool cli_is_clean(const char *s);
