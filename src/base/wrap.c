/* Wrapping: see wrap.h. In the command and in the library's caller; the text is ours, or escaped.
 */
#include "wrap.h"

#include <string.h>

void wrap_print(FILE *out, const char *text, size_t indent, size_t width)
{
	size_t column = indent;

	while (*text) {
		size_t word = strcspn(text, " ");

		if (column > indent && column + 1 + word > width) {
			fprintf(out, "\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			fputc(' ', out);
			column++;
		}
		fprintf(out, "%.*s", (int)word, text);
		column += word;
		text += word + strspn(text + word, " ");
	}
	fputc('\n', out);
}
