/* Hostile bytes as JSON text: the one door by which names and contents from a box enter the log. */
#include "audit/audit.h"

#include <string.h>

#include "base/buf.h"
#include "base/str.h"

#define TEXT_MAX (32u << 20) /* no line is longer, so that SIZE_MAX may stand for "the whole" */

json_t *audit_text(const char *bytes, size_t len, size_t max)
{
	if (max > TEXT_MAX)
		max = TEXT_MAX;
	_cleanup_buf_ struct buf b = BUF_INIT(max + 8);
	size_t i = 0;
	bool cut = false;

	while (i < len && !cut) {
		/* Not further than can be kept: a gigabyte is not scanned to show its head. */
		size_t look = len - i < max - b.len + 4 ? len - i : max - b.len + 4;
		const char *nul = memchr(bytes + i, '\0', look);
		/* Nor beyond the next NUL, which is escaped: many of them would be looked at as
		 * often. */
		size_t run = str_utf8_prefix(bytes + i, nul ? (size_t)(nul - (bytes + i)) : look);

		if (run > max - b.len) {
			run = str_utf8_prefix(bytes + i, max - b.len);
			cut = true;
		}
		if (buf_add(&b, bytes + i, run) < 0)
			return NULL;
		i += run;
		if (cut || i >= len)
			break;
		if (b.len + 4 > max) {
			cut = true;
			break;
		}
		if (buf_addf(&b, "\\x%02x", (unsigned char)bytes[i]) < 0)
			return NULL;
		i++;
	}
	if (cut && buf_adds(&b, "...") < 0)
		return NULL;
	return b.len ? json_stringn(b.data, b.len) : json_string("");
}
