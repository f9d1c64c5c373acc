/* The operands of `pale diff`, `apply` and `discard`: see workspace.h. They are the caller's own.
 */
#include "cli/workspace.h"

#include <string.h>

/* An id's alphabet, so that most names of files are not taken for one. */
static bool reads_like_run(const char *s)
{
	if (strcmp(s, "last") == 0 || s[0] == '@')
		return true;
	return strlen(s) >= 4 && strlen(s) <= PALE_ID_SIZE - 1 && s[0] == '0' &&
	       strspn(s, "0123456789abcdefghjkmnpqrstvwxyz") == strlen(s);
}

int cli_workspace(const struct cli_args *args, char id[PALE_ID_SIZE], const char **ret_run,
		  struct pale_workspace_options *o, struct pale_err *err)
{
	bool named = args->argc > 0 && reads_like_run(args->argv[0]);
	int r = named ? pale_audit_find(args->argv[0], id, err) : 0;

	*ret_run = named ? id : NULL;
	o->paths = (const char *const *)args->argv + named;
	o->npaths = (size_t)args->argc - named;
	return r;
}
