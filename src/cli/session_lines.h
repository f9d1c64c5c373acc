/* Whether a piece of code goes on in the next line. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* code: the lines so far, without the last newline; kernel: "python", "ipython", "node", "bash".
 * True: more is to come. It looks at brackets, quotes, comments and blocks, and does not parse: an
 * empty line ends every block. */
bool session_lines_open(const char *kernel, const char *code, size_t len);
