/* pale session new: starts a session, and leaves it running. In the caller's process; the session
 * has a supervisor of its own. Trusted: the command line and the policy that it names. */
#include "cli/session.h"

#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "cli/audit.h"

enum {
	OPT_NAME = 1,
	OPT_KERNEL,
	OPT_IMPORT,
	OPT_IDLE,
	OPT_LIFETIME,
	OPT_GRACE,
	OPT_NO_ROLLBACK,
	OPT_JSON,
};
static const struct cli_option options[] = {
	{OPT_NAME, 'n', "name", "NAME",
	 "by which it can be called: letters, digits, `.`, `_` and `-`", "any"},
	{OPT_KERNEL, 'k', "kernel", "KERNEL", "the interpreter (default: python)",
	 "key:session.kernel"},
	{OPT_IMPORT, 0, "import", "MODULE[,MODULE...]",
	 "import modules ahead (Python), so that importing them then takes no time; may be "
	 "repeated",
	 "any"},
	{OPT_IDLE, 0, "idle", "TIME", "end it after so long without use (default: 30m)", "any"},
	{OPT_LIFETIME, 0, "lifetime", "TIME", "end it after so long (default: 24h)", "any"},
	{OPT_GRACE, 0, "grace", "TIME",
	 "how long an interrupted execution has to end by itself (default: 1s)", "any"},
	{OPT_NO_ROLLBACK, 0, "no-rollback", NULL,
	 "do not hold the state before each execution: one that does not end when it is "
	 "interrupted then costs all variables"},
	{OPT_JSON, 0, "json", NULL, "print an object with id, name, kernel and ready_ms"},
	{0},
};

/* An option that stands for a key of the policy. */
static const struct {
	int id;
	const char *key;
} keys[] = {
	{OPT_KERNEL, "session.kernel"},
	{OPT_IMPORT, "session.imports"},
	{OPT_IDLE, "session.idle"},
	{OPT_LIFETIME, "session.lifetime"},
	{OPT_NO_ROLLBACK, "session.rollback"},
	{OPT_GRACE, "session.grace"},
};

struct setting {
	const char *key, *flag, *value;
};

static bool take_setting(int id, const char *value, struct setting *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (keys[i].id != id)
			continue;
		*ret = (struct setting){.key = keys[i].key, .value = value ? value : "false"};
		for (const struct cli_option *o = options; o->name; o++)
			if (o->id == id)
				ret->flag = o->name;
		return true;
	}
	return false;
}

static int apply(struct pale_policy *p, const struct setting *s, size_t n, struct pale_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		char origin[64];

		snprintf(origin, sizeof(origin), "--%s", s[i].flag);
		pale_policy_origin(p, origin);
		r = pale_policy_set(p, s[i].key, s[i].value, err);
	}
	pale_policy_origin(p, NULL);
	return r;
}

/* What the policy says, the flags included. */
static json_t *kernel_of(const struct pale_policy *policy)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_json_ json_t *all = NULL;

	if (pale_policy_json(policy, &text, NULL) == 0)
		all = json_loads(text, JSON_ALLOW_NUL, NULL);
	return json_incref(json_object_get(json_object_get(all, "session"), "kernel"));
}

static int print(const struct pale_policy *policy, const char *id, const char *name, bool json,
		 uint64_t ready_us)
{
	if (json)
		return cli_session_print_json(json_pack("{s:s, s:s?, s:o?, s:I}", "id", id, "name",
							name, "kernel", kernel_of(policy),
							"ready_ms", (json_int_t)ready_us / 1000));
	puts(name ? name : id);
	return cli_flushed(0);
}

static int run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_session_new_command, argc, argv);
	_cleanup_policy_ struct pale_policy *file = NULL, *policy = NULL;
	struct pale_session_options how = {.size = sizeof(how)};
	struct setting settings[64];
	struct pale_err err = {0};
	char session[PALE_ID_SIZE];
	bool json = false;
	const char *value;
	uint64_t begun_us;
	size_t n = 0;
	int id;

	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_NAME: how.name = value; break;
		case OPT_JSON: json = true; break;
		default:
			if (n == ARRAY_SIZE(settings))
				return cli_usage("session new", "too many options");
			n += take_setting(id, value, &settings[n]);
		}
	if (id < 0)
		return args.status;
	if (args.argc)
		return cli_usage("session new", "it takes no operand: %s; --name gives it a name",
				 QUOTED(args.argv[0]));
	if (cli_policy(&args, &file, &policy, &err) < 0 || apply(policy, settings, n, &err) < 0)
		return cli_fail_as(&err, err.code == PALE_E_NOMEM ? CLI_EXIT_PALE : CLI_EXIT_USAGE);
	how.base_policy = file;
	begun_us = clock_mono_us();
	if (pale_session_new(policy, &how, session, &err) < 0)
		return cli_session_fail(&err);
	pale_audit_prune_daily();
	return print(policy, session, how.name, json, clock_mono_us() - begun_us);
}

const struct cli_command cli_session_new_command = {
	.name = "session new",
	.summary = "start a session",
	.usage = "[OPTION...]",
	.help = "Starts a box with an interpreter in it, waits until that is ready, and prints the "
		"session's\n"
		"name, or its id if it was given none. The policy is as for `pale run`; the limits "
		"of time,\n"
		"processor time and output are those of each execution, the others those of the "
		"box.\n"
		"\n"
		"  pale session new --name work --ro data.csv --memory 1GiB\n"
		"  id=$(pale session new --import numpy,pandas --timeout 10s)\n"
		"  pale session new -p policy.yaml --kernel bash --json\n"
		"\n"
		"Exit status: 0; 1 if the name is taken or it cannot be enforced here; 2 if the "
		"usage or the\n"
		"policy is wrong; 125 if Pale failed.\n",
	.options = options,
	.policy_flags = true,
	.run = run,
};
