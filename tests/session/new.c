/* Starts a session for the tests that speak to its door: prints its id.
 *
 * usage: test-session-new POLICY [NAME], the policy as JSON */
#include <stdio.h>
#include <string.h>

#include "pale.h"

int main(int argc, char **argv)
{
	struct pale_session_options options = {.size = sizeof(options)};
	struct pale_policy *policy = NULL;
	char id[PALE_ID_SIZE];
	struct pale_err err;
	int r;

	if (argc < 2)
		return 2;
	r = pale_policy_new(&policy, &err);
	options.name = argc > 2 ? argv[2] : NULL;
	if (r == 0)
		r = pale_policy_load_text(policy, argv[1], strlen(argv[1]), "test", "/", true,
					  &err);
	if (r == 0)
		r = pale_session_new(policy, &options, id, &err);
	pale_policy_free(policy);
	if (r < 0) {
		fprintf(stderr, "%s: %s\n", err.stage, err.message);
		return 1;
	}
	puts(id);
	return 0;
}
