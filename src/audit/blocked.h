/* What was blocked, one row a thing, for people. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Add the events of a run, print, free(). NULL: out of memory. */
struct blocked_table;
struct blocked_table *blocked_new(void);
void blocked_add(struct blocked_table *t, const json_t *event);
void blocked_print(struct blocked_table *t, FILE *out, bool colour, size_t width);
