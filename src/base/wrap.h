/* Text for people, in lines of a given width. */
#pragma once

#include <stddef.h>
#include <stdio.h>

/* Prints text from column `indent` on, where the cursor is, broken at blanks into lines that end
 * before column `width`; later lines are indented as far. A newline ends it. Runs of blanks become
 * one. */
void wrap_print(FILE *out, const char *text, size_t indent, size_t width);
