/* A program that uses libpale: runs a command with a policy in a box with a supervisor of its own,
 * and prints the result. usage: library POLICY COMMAND... */
#include <pale.h>

#include <stdio.h>

int main(int argc, char **argv)
{
	struct pale_command command = {.size = sizeof(command)};
	struct pale_policy *policy = NULL;
	struct pale_result *result = NULL;
	struct pale_err err = {0};
	int r;

	if (argc < 3)
		return 2;
	command.argv = (const char *const *)argv + 2;
	r = pale_policy_new(&policy, &err);
	if (r == 0)
		r = pale_policy_load(policy, argv[1], &err);
	if (r == 0)
		r = pale_run(policy, &command, NULL, &result, &err);
	if (r < 0)
		fprintf(stderr, "%s\n", err.message);
	else
		puts(pale_result_json(result));
	pale_result_free(result);
	pale_policy_free(policy);
	return r < 0;
}
