/* Finding a run by what a person types, and reading its events. The log may have been altered; its
 * texts are hostile and stay JSON strings here. */
#include "audit/audit.h"

#include <fcntl.h>
#include <string.h>

#include "audit/lines.h"
#include "audit/state.h"
#include "audit/ulid.h"
#include "base/num.h"
#include "base/str.h"

#define STAGE "audit"

/* "last", "@" and "@N": how far back; -1 for another reference. */
static long back(const char *ref)
{
	uint64_t n = 0;

	if (strcmp(ref, "last") == 0 || strcmp(ref, "@") == 0)
		return 0;
	return ref[0] == '@' && num_parse_u64(ref + 1, 1000000000, &n) == 0 ? (long)n : -1;
}

int audit_find(const char *ref, char ret_id[static AUDIT_ID_SIZE], struct pale_err *err)
{
	_cleanup_state_ struct audit_state s = AUDIT_STATE_NONE;
	_cleanup_free_ char(*ids)[AUDIT_ID_SIZE] = NULL;
	char lower[AUDIT_ID_SIZE] = "";
	size_t n, len = strlen(ref), found = 0;
	long ago = back(ref);
	int r = audit_state_open(&s, err);

	if (r < 0)
		return r;
	r = audit_state_list(&s, &ids, &n, err);
	if (r < 0)
		return r;
	if (ago >= 0) {
		if ((size_t)ago >= n)
			return err_set(err, PALE_E_NOTFOUND, STAGE, 0,
				       "there are only %zu runs in %s", n, QUOTED(s.path));
		memcpy(ret_id, ids[n - 1 - (size_t)ago], AUDIT_ID_SIZE);
		return 0;
	}
	if (len > 0 && len <= AUDIT_ID_LEN)
		for (size_t i = 0; i < len; i++)
			lower[i] = (char)(ref[i] >= 'A' && ref[i] <= 'Z' ? ref[i] + 32 : ref[i]);
	for (size_t i = 0; lower[0] && i < n; i++)
		if (str_starts(ids[i], lower)) {
			memcpy(ret_id, ids[i], AUDIT_ID_SIZE);
			found++;
		}
	if (found == 0)
		return err_set(err, PALE_E_NOTFOUND, STAGE, 0,
			       "no run %s in %s; `pale audit list` shows them", QUOTED(ref),
			       QUOTED(s.path));
	if (found > 1)
		return err_set(err, PALE_E_USAGE, STAGE, 0,
			       "%zu runs begin with %s: give more of the id", found, QUOTED(ref));
	return 0;
}

int audit_read(const char *id, audit_reader *fn, void *arg, struct pale_err *err)
{
	_cleanup_close_ int log = audit_state_open_log(id, err);
	unsigned number = 0;
	const char *text;
	size_t len;
	int r;

	if (log < 0)
		return log;
	_cleanup_log_lines_ struct log_lines lines = LOG_LINES(log);

	while ((r = log_next(&lines, &text, &len)) > 0) {
		_cleanup_line_ struct chain_line line = {0};
		const char *why = chain_parse(text, len, &line);

		number++;
		if (why)
			return err_set(
				err, PALE_E_AUDIT, STAGE, 0,
				"line %u of the log of run %s is damaged: %s; see `pale audit "
				"verify`",
				number, id, why);
		r = fn(arg, line.object);
		if (r)
			return r;
	}
	if (r < 0)
		return err_set(err, PALE_E_AUDIT, STAGE, -r, "reading the log of run %s", id);
	return 0;
}
