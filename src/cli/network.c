/* pale network: the network rules of a box that runs, shown and changed. Runs with the caller's
 * rights, outside any box; what the supervisor answers is the caller's own, and its figures and
 * texts are printed escaped all the same. */
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "cli/audit.h"

extern const struct cli_command cli_network_command;

enum { OPT_JSON = 1, OPT_REASON };
static const struct cli_option options[] = {
	{OPT_REASON, 0, "reason", "TEXT", "with deny: what a program that is refused is told",
	 "any"},
	{OPT_JSON, 0, "json", NULL, "one JSON object: the rules, or what was changed"},
	{0},
};

enum verb { SHOW, ALLOW, DENY, REMOVE, VERBS };
static const char *const verbs[] = {"show", "allow", "deny", "remove"};

/* No beginning of an id is one of these words: an id begins with a digit. */
static enum verb verb_of(const char *word)
{
	enum verb v = SHOW;

	while (v < VERBS && strcmp(word, verbs[v]) != 0)
		v++;
	return v;
}

static json_int_t figure(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "";
}

static void print_escaped(const char *before, const char *text, const char *after)
{
	_cleanup_buf_ struct buf b = BUF_INIT(8192);

	if (!*text)
		return;
	str_escape(&b, text, strlen(text));
	printf("%s%s%s", before, b.data ? b.data : "", after);
}

static void print_rules(const json_t *shown)
{
	const json_t *rules = json_object_get(shown, "rules"), *rule;
	size_t i;

	if (json_array_size(rules))
		printf("%4s  %11s  %8s  %7s  %9s  %9s  %s\n", "RULE", "CONNECTIONS", "REQUESTS",
		       "BLOCKED", "SENT", "RECEIVED", "WHAT");
	else
		printf("Nothing is allowed.\n");
	json_array_foreach(rules, i, rule)
	{
		const json_t *c = json_object_get(rule, "counters");
		char out[NUM_TEXT], in[NUM_TEXT];

		printf("%4lld  %11lld  %8lld  %7lld  %9s  %9s  ", (long long)figure(rule, "rule"),
		       (long long)figure(c, "connections"), (long long)figure(c, "requests"),
		       (long long)figure(c, "blocked"),
		       num_round_size(out, (uint64_t)figure(c, "bytes_out")),
		       num_round_size(in, (uint64_t)figure(c, "bytes_in")));
		print_escaped("", text_of(rule, "text"), "");
		print_escaped("  [preset ", text_of(rule, "preset"), "]");
		print_escaped("  \"", text_of(rule, "reason"), "\"");
		putchar('\n');
	}
	if (figure(shown, "unmatched_blocked"))
		printf("%lld blocked that no rule names.\n",
		       (long long)figure(shown, "unmatched_blocked"));
}

static void print_change(const json_t *done)
{
	const json_t *text;
	size_t i;

	json_array_foreach(json_object_get(done, "removed"), i, text)
		print_escaped("- ", json_string_value(text), "\n");
	json_array_foreach(json_object_get(done, "added"), i, text)
		print_escaped("+ ", json_string_value(text), "\n");
	if (strcmp(text_of(done, "effect"), "unchanged") == 0)
		printf("That is so already.\n");
	else
		printf("In force, and in the log: %s.\n", text_of(done, "effect"));
}

static int ask(const char *id, enum verb verb, char *const *rules, const char *reason, char **ret,
	       struct pale_err *err)
{
	struct pale_network_change change = {.size = sizeof(change), .reason = reason};
	const char *const *texts = (const char *const *)rules;

	switch (verb) {
	case ALLOW: change.allow = texts; break;
	case DENY: change.deny = texts; break;
	case REMOVE: change.remove = texts; break;
	case SHOW:
	case VERBS: return pale_box_network_show(id, ret, err);
	}
	return pale_box_network_change(id, &change, ret, err);
}

/* 2: what was asked is wrong; 1: it was not done; 125: Pale failed. */
static int failed(const struct pale_err *err)
{
	cli_fail(err);
	switch (err->code) {
	case PALE_E_USAGE:
	case PALE_E_POLICY: return CLI_EXIT_USAGE;
	case PALE_E_NOTFOUND:
	case PALE_E_CONFLICT:
	case PALE_E_HOST: return 1;
	default: return CLI_EXIT_PALE;
	}
}

static int network(const char *box, enum verb verb, char *const *rules, const char *reason,
		   bool json)
{
	_cleanup_free_ char *text = NULL;
	struct pale_err err = {0};
	char id[PALE_ID_SIZE];
	json_t *o;

	if (pale_box_find(box, id, &err) < 0) {
		cli_fail(&err);
		return err.code == PALE_E_USAGE ? CLI_EXIT_USAGE : CLI_EXIT_PALE;
	}
	if (ask(id, verb, rules, reason, &text, &err) < 0)
		return failed(&err);
	if (json) {
		puts(text);
		return cli_flushed(0);
	}
	o = json_loads(text, 0, NULL);
	if (verb == SHOW)
		print_rules(o);
	else
		print_change(o);
	json_decref(o);
	return cli_flushed(0);
}

static int run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_network_command, argc, argv);
	const char *value, *box = NULL, *reason = NULL;
	enum verb verb = SHOW;
	bool json = false;
	int id, at = 0;

	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_REASON: reason = value; break;
		case OPT_JSON: json = true; break;
		}
	if (id < 0)
		return args.status;
	/* A box, if a verb follows or it can be one. */
	if (at < args.argc && verb_of(args.argv[at]) == VERBS &&
	    (args.argc > 1 || (args.argv[at][0] >= '0' && args.argv[at][0] <= '7')))
		box = args.argv[at++];
	if (at < args.argc) {
		verb = verb_of(args.argv[at]);
		if (verb == VERBS &&
		    (str_starts(args.argv[at], "secret") || (box && str_starts(box, "secret"))))
			return cli_usage("network",
					 "a secret cannot be added to a box that runs: its "
					 "placeholder is put there before the code starts; run "
					 "again with --secret");
		if (verb == VERBS)
			return cli_usage("network", "%s: one of show, allow, deny, remove is meant",
					 QUOTED(args.argv[at]));
		at++;
	}
	if (verb == SHOW && at < args.argc)
		return cli_usage("network", "show takes no rule: %s", QUOTED(args.argv[at]));
	if (verb != SHOW && at == args.argc)
		return cli_usage("network", "%s what?", verbs[verb]);
	if (reason && verb != DENY)
		return cli_usage("network", "--reason belongs to deny");
	return network(box, verb, args.argv + at, reason, json);
}

const struct cli_command cli_network_command = {
	.name = "network",
	.summary = "show or change the network rules of a box that runs",
	.usage = "[OPTION...] [BOX] [show|allow|deny|remove] [RULE...]",
	.help = "Shows which network rules are in force in a running box, and what they let "
		"through, or\n"
		"changes them: at once, all that is said or nothing, and on record in the box's "
		"log.\n"
		"\n"
		"  pale network                            the rules, if a single box runs\n"
		"  pale network 01j9 allow api.example.com\n"
		"  pale network allow preset:pypi \"GET www.example.com/docs/**\"\n"
		"  pale network deny --reason \"use the mirror\" \"*.example.org\"\n"
		"  pale network remove 3 preset:pypi\n"
		"\n"
		"BOX is the id of its run, a unique beginning of one (pale audit list --outcome "
		"running\n"
		"lists them), or `last`, the newest; it can be left out where a single box with "
		"network\n"
		"rules runs. RULE is as for --allow and --deny of `pale run`. To remove, it is the "
		"number\n"
		"that `show` gives, preset:NAME, or a rule in which what is left out is any: all "
		"rules, of\n"
		"either kind, that it covers.\n"
		"\n"
		"A deny rule wins over those that allow. Open connections that are not allowed any "
		"more are\n"
		"ended. What is there already is not added again.\n"
		"\n"
		"Not in a box that runs: secrets, and rules with methods or paths for TLS where "
		"the box was\n"
		"started without any.\n"
		"\n"
		"Exit status: 0; 1 it was not done, and nothing was changed; 2 a rule or the usage "
		"is wrong;\n"
		"125 there is no such box, or Pale failed.\n",
	.options = options,
	.run = run,
};
