/* Boxes with a supervisor of their own: not yet. */
#include "api.h"

int pale_box_start(const struct pale_policy *policy, const struct pale_command *command,
		   const struct pale_run_options *options, struct pale_box **ret,
		   struct pale_err *err)
{
	(void)policy;
	(void)command;
	(void)options;
	(void)ret;
	return err_set(err, PALE_E_USAGE, "supervise", 0, "not yet");
}
int pale_box_wait(struct pale_box *box, struct pale_result **ret, struct pale_err *err)
{
	(void)box;
	(void)ret;
	return err_set(err, PALE_E_USAGE, "supervise", 0, "not yet");
}
void pale_box_free(struct pale_box *box)
{
	(void)box;
}
