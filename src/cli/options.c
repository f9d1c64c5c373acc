/* Options of the command line: see options.h. Runs in the caller's process with the caller's
 * rights; argv is the caller's own, and still quoted before it is shown. */
#include "cli/options.h"

#include <getopt.h>
#include <jansson.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "cli/cli.h"

enum { ID_HELP = CLI_POLICY_IDS - 1 };

static const struct cli_option common_options[] = {
	{ID_HELP, 'h', "help", NULL, "show this help"},
	{0},
};

/* The tables of one command, in the order in which they are shown. */
struct tables {
	const struct cli_option *table[3];
	const char *title[3];
	size_t n;
};

static struct tables tables_of(const struct cli_command *command)
{
	struct tables t = {0};

	if (command->options) {
		t.title[t.n] = "Options";
		t.table[t.n++] = command->options;
	}
	t.title[t.n] = t.n ? NULL : "Options";
	t.table[t.n++] = common_options;
	if (command->policy_flags) {
		t.title[t.n] =
			"Policy options (the same as in a policy file, and combined with it; "
			"see pale-policy(5))";
		t.table[t.n++] = cli_policy_options();
	}
	return t;
}

struct parser {
	char *letters;
	struct option *longs;
	const struct cli_option **rows; /* in the order of longs */
	size_t n;
};

static void parser_free(struct parser *p)
{
	if (!p)
		return;
	free(p->letters);
	free(p->longs);
	free(p->rows);
	free(p);
}

static struct parser *parser_new(const struct cli_command *command)
{
	const struct tables t = tables_of(command);
	struct parser *p = calloc(1, sizeof(*p));
	size_t n = 0, used = 0;

	if (!p)
		return NULL;
	for (size_t i = 0; i < t.n; i++)
		for (const struct cli_option *o = t.table[i]; o->name; o++)
			n++;
	p->letters = calloc(n + 2, 2);
	p->longs = calloc(n + 1, sizeof(*p->longs));
	p->rows = calloc(n + 1, sizeof(*p->rows));
	if (!p->letters || !p->longs || !p->rows) {
		parser_free(p);
		return NULL;
	}
	/* "+": stop at the first operand; ":": tell a missing argument from an unknown option. */
	if (command->stop_at_operand)
		p->letters[used++] = '+';
	p->letters[used++] = ':';
	for (size_t i = 0; i < t.n; i++) {
		for (const struct cli_option *o = t.table[i]; o->name; o++) {
			p->rows[p->n] = o;
			p->longs[p->n++] = (struct option){
				.name = o->name,
				.has_arg = o->arg ? required_argument : no_argument,
				.val = o->id,
			};
			if (!o->letter)
				continue;
			p->letters[used++] = o->letter;
			if (o->arg)
				p->letters[used++] = ':';
		}
	}
	return p;
}

static const struct cli_option *row_by_id(const struct parser *p, int id)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->rows[i]->id == id || (p->rows[i]->letter && p->rows[i]->letter == id))
			return p->rows[i];
	return NULL;
}

/* The word of argv in which the option stands that getopt_long has just returned. */
static const char *option_word(const struct cli_args *args, const struct cli_option *o)
{
	bool apart = o && o->arg && optarg == args->argv[optind - 1];

	return args->argv[optind - (apart ? 2 : 1)];
}

/* getopt_long takes --mem for --memory. What is short for one option now may be short for two in
 * the next version, or for another one: a script says what it means. */
static bool abbreviated(const char *word, const struct cli_option *o)
{
	return str_starts(word, "--") &&
	       (strcspn(word + 2, "=") != strlen(o->name) || !str_starts(word + 2, o->name));
}

/* What is wrong with the option at which getopt_long stopped, in words. */
static void report(struct cli_args *args, int c, const char *word)
{
	const struct parser *p = args->parser;
	const struct cli_option *o = row_by_id(p, optopt);
	const char *best = NULL;
	size_t len, distance = strlen(word) < 7 ? 2 : 3; /* of short words much is near */
	char letter[2] = {(char)optopt, '\0'};
	char name[64];

	if (c == ':') {
		cli_usage(args->command->name, "--%s needs an argument: %s", o ? o->name : "?",
			  o && o->arg ? o->arg : "VALUE");
		return;
	}
	if (!str_starts(word, "--")) {
		cli_usage(args->command->name, "there is no option -%s",
			  letter[0] > ' ' && letter[0] < 0x7f ? letter : "?");
		return;
	}
	if (c == '?' && o && !o->arg && strchr(word, '=')) {
		cli_usage(args->command->name, "--%s takes no argument", o->name);
		return;
	}
	len = strcspn(word, "=");
	snprintf(name, sizeof(name), "%.*s", (int)(len < 60 ? len : 60), word);
	for (size_t i = 0; i < p->n && name[2]; i++) {
		/* A beginning of it, or near it. */
		size_t d = str_starts(p->rows[i]->name, name + 2)
				   ? 0
				   : str_distance(name + 2, p->rows[i]->name, distance);

		if (d < distance) {
			distance = d;
			best = p->rows[i]->name;
		}
	}
	if (best)
		cli_usage(args->command->name, "there is no option %s: did you mean --%s?",
			  QUOTED(name), best);
	else
		cli_usage(args->command->name, "there is no option %s", QUOTED(name));
}

int cli_next(struct cli_args *args, const char **ret_value)
{
	struct parser *p = args->parser;
	int failed = args->command->usage_status ? args->command->usage_status : CLI_EXIT_USAGE;

	*ret_value = NULL;
	args->status = failed;
	if (!p) {
		args->parser = p = parser_new(args->command);
		args->flags = p ? calloc((size_t)args->argc + 1, sizeof(*args->flags)) : NULL;
		if (!args->flags) {
			fprintf(stderr, "pale: out of memory\n");
			args->status = CLI_EXIT_PALE;
			return -1;
		}
		cli_begin(args->command, args->argv);
		/* 0 makes glibc start afresh, also after another table was parsed. */
		optind = 0;
		opterr = 0;
	}
	for (;;) {
		const struct cli_option *o;
		int c;

		optopt = 0;
		c = getopt_long(args->argc, args->argv, p->letters, p->longs, NULL);
		if (c == -1)
			break;
		o = c == '?' || c == ':' ? NULL : row_by_id(p, c);
		if (!o || abbreviated(option_word(args, o), o)) {
			report(args, o ? '?' : c, option_word(args, o));
			return -1;
		}
		if (o->id == ID_HELP) {
			cli_print_help(stdout, args->command);
			args->status = fflush(stdout) == 0 ? 0 : CLI_EXIT_PALE;
			return -1;
		}
		if (o->id >= CLI_POLICY_IDS) {
			args->flags[args->nflags++] = (struct cli_flag){o->id, optarg};
			continue;
		}
		if (strcmp(o->name, "json") == 0)
			cli_json();
		*ret_value = o->arg ? optarg : NULL;
		return o->id;
	}
	cli_begin_done();
	args->argc -= optind;
	args->argv += optind;
	args->status = 0;
	return 0;
}

void cli_args_done(struct cli_args *args)
{
	parser_free(args->parser);
	free(args->flags);
	args->parser = NULL;
	args->flags = NULL;
	args->nflags = 0;
}

/* Words of text from column `at`, wrapped to 79 columns with the given indent. */
static void print_wrapped(FILE *f, const char *text, size_t at, size_t indent)
{
	while (*text) {
		size_t len = strcspn(text, " ");

		if (at > indent && at + len + 1 > 79) {
			fprintf(f, "\n%*s", (int)indent, "");
			at = indent;
		} else if (at > indent) {
			fputc(' ', f);
			at++;
		}
		fwrite(text, 1, len, f);
		at += len;
		text += len + strspn(text + len, " ");
	}
	fputc('\n', f);
}

static void print_option(FILE *f, const struct cli_option *o)
{
	enum { INDENT = 26 };
	int used;

	if (o->letter)
		used = fprintf(f, "  -%c, --%s", o->letter, o->name);
	else
		used = fprintf(f, "      --%s", o->name);
	if (o->arg)
		used += fprintf(f, " %s", o->arg);
	if (used + 2 > INDENT) {
		fputc('\n', f);
		used = 0;
	}
	fprintf(f, "%*s", INDENT - used, "");
	print_wrapped(f, o->help, INDENT, INDENT);
}

void cli_print_help(FILE *f, const struct cli_command *command)
{
	const struct tables t = tables_of(command);

	fprintf(f, "usage: pale %s%s%s\n\n%s\n", command->name,
		command->usage && *command->usage ? " " : "", command->usage ? command->usage : "",
		command->summary);
	if (command->help && *command->help)
		fprintf(f, "\n%s%s", command->help, str_ends(command->help, "\n") ? "" : "\n");
	if (command->subcommands) {
		fprintf(f, "\nCommands:\n");
		for (size_t i = 0; command->subcommands[i]; i++)
			fprintf(f, "  %-22s  %s\n", command->subcommands[i]->name,
				command->subcommands[i]->summary);
		return;
	}
	for (size_t i = 0; i < t.n; i++) {
		if (t.title[i])
			fprintf(f, "\n%s:\n", t.title[i]);
		for (const struct cli_option *o = t.table[i]; o->name; o++)
			print_option(f, o);
	}
}

/* "key:session.kernel": the words that are possible for this key of the policy. */
static const char *completion_of(const struct cli_option *o, struct pale_policy_key *key)
{
	if (!o->complete || !str_starts(o->complete, "key:"))
		return o->complete;
	for (size_t i = 0; pale_policy_key(i, key); i++)
		if (strcmp(key->key, o->complete + 4) == 0)
			return *key->words ? key->words : NULL;
	return NULL;
}

/* Adds a string, or nothing where there is none. */
static int put(json_t *object, const char *key, const char *value)
{
	return value ? json_object_set_new(object, key, json_string(value)) : 0;
}

static json_t *describe(const struct cli_command *command)
{
	const struct tables t = tables_of(command);
	json_t *j = json_object(), *options = json_array(), *subcommands = json_array();
	int r = 0;

	for (size_t i = 0; i < t.n; i++) {
		for (const struct cli_option *o = t.table[i]; o->name; o++) {
			json_t *row = json_object();
			struct pale_policy_key key;
			char letter[2] = {o->letter, '\0'};

			r |= put(row, "name", o->name);
			r |= put(row, "letter", o->letter ? letter : NULL);
			r |= put(row, "argument", o->arg);
			r |= put(row, "help", o->help);
			r |= put(row, "complete", completion_of(o, &key));
			r |= json_object_set_new(row, "policy",
						 json_boolean(o->id >= CLI_POLICY_IDS));
			r |= json_array_append_new(options, row);
		}
	}
	for (size_t i = 0; command->subcommands && command->subcommands[i]; i++)
		r |= json_array_append_new(subcommands, describe(command->subcommands[i]));
	r |= put(j, "name", command->name);
	r |= put(j, "summary", command->summary);
	r |= put(j, "usage", command->usage);
	r |= put(j, "help", command->help);
	r |= json_object_set_new(j, "stop_at_operand", json_boolean(command->stop_at_operand));
	r |= json_object_set_new(j, "options", options);
	r |= json_object_set_new(j, "subcommands", subcommands);
	if (r == 0)
		return j;
	json_decref(j);
	return NULL;
}

int cli_dump_commands(FILE *f, const struct cli_command *const *commands)
{
	json_t *all = json_array();
	int r = 0;

	for (size_t i = 0; commands[i]; i++)
		r |= json_array_append_new(all, describe(commands[i]));
	if (r == 0)
		r = json_dumpf(all, f, JSON_INDENT(2));
	json_decref(all);
	if (r != 0 || fputc('\n', f) == EOF)
		return CLI_EXIT_PALE;
	return 0;
}
