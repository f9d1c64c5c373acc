/* Symbolic links by their text: see links.h. Both arguments are hostile. */
#include "base/links.h"

#include <string.h>

bool link_leads_out(const char *path, const char *target)
{
	size_t depth = 0;
	bool went_down = false;

	if (target[0] == '/')
		return true;
	for (const char *s = path; *s; s++)
		depth += *s == '/';
	for (const char *s = target; *s;) {
		size_t n = strcspn(s, "/");

		if (n == 2 && s[0] == '.' && s[1] == '.') {
			if (went_down || depth == 0)
				return true;
			depth--;
		} else if (n > 1 || (n == 1 && s[0] != '.')) {
			went_down = true;
		}
		s += n + (s[n] == '/');
	}
	return false;
}
