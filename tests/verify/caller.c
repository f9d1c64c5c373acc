/* A program with an environment of its own that calls pale_verify(): it prints two variables, which
 * must be what they were. */
#include <pale.h>
#include <stdlib.h>

static const char *text(const char *name)
{
	return getenv(name) ? getenv(name) : "unset";
}

int main(void)
{
	struct pale_verify_options how = {.size = sizeof(how), .attacks = "bpf"};
	struct pale_policy *policy = NULL;
	struct pale_err err = {0};
	char *report = NULL;
	int r = pale_policy_new(&policy, &err);

	if (r == 0)
		r = pale_verify(policy, &how, &report, &err);
	printf("%d %s %s %s\n", r, text("CANARY"), text("PALE_STATE_DIR"), err.message);
	free(report);
	pale_policy_free(policy);
	return r != 1;
}
