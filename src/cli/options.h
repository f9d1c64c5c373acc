/* Command-line options as tables: one row an option, over getopt_long.
 *
 *	enum { OPT_JSON = 1, OPT_OUTPUT };
 *	static const struct cli_option options[] = {
 *		{OPT_JSON, 0, "json", NULL, "print the result as JSON"},
 *		{OPT_OUTPUT, 'o', "output", "FILE", "write to FILE", .complete = "file"},
 *		{0},
 *	};
 *
 *	static int run(int argc, char **argv)
 *	{
 *		_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_diff_command, argc, argv);
 *		const char *value;
 *		int id;
 *
 *		while ((id = cli_next(&args, &value)) > 0)
 *			switch (id) {
 *			case OPT_JSON: json = true; break;
 *			case OPT_OUTPUT: output = value; break;
 *			}
 *		if (id < 0)
 *			return args.status;
 *		... args.argc operands are in args.argv[0 ...]
 *
 * --help (-h) is in every table by itself. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/err.h"

struct cli_command;

struct cli_option {
	int id;		      /* 1 ... CLI_POLICY_IDS - 1: what cli_next() returns */
	char letter;	      /* the short form, or 0 */
	const char *name;     /* the long form, without dashes */
	const char *arg;      /* the argument's name for the help text; NULL: takes none */
	const char *help;     /* a phrase without a final full stop; wrapped where printed */
	const char *complete; /* for shells: "file", "dir", "run", "policy", "command", or words
				 "a|b", or "key:NAME": those of a key of the policy */
};

#define CLI_POLICY_IDS 1000 /* options from here on are the policy flags; never returned */

struct cli_flag {
	int id;
	const char *value; /* borrowed from argv */
};

struct cli_args {
	const struct cli_command *command;
	int argc;    /* of the whole line; once cli_next() returned 0: the number of operands */
	char **argv; /* likewise; NULL-terminated */
	int status;  /* the exit status if cli_next() returned < 0 */
	/* private */
	void *parser;
	struct cli_flag *flags; /* the policy flags in the order given */
	size_t nflags;
};

#define CLI_ARGS(cmd, c, v) ((struct cli_args){.command = (cmd), .argc = (c), .argv = (v)})

/* The next option: its id, and its argument in *ret_value (NULL if it takes none). 0 at the end,
 * when args->argc and args->argv are the operands ("--" is taken out). Negative when the command is
 * to return args->status at once: --help was asked for and printed, or the usage is wrong and was
 * reported. Policy flags are kept aside for cli_policy(). */
int cli_next(struct cli_args *args, const char **ret_value);
void cli_args_done(struct cli_args *args);
#define _cleanup_cli_args_ _cleanup_(cli_args_done)

/* The policy that -p and the policy flags of this command line ask for, after cli_next() returned
 * 0: the defaults (`compute`), then each -p file, then each flag in the order given. *ret_file, if
 * not NULL, is the same without the flags, so that what the flags add can be told apart. Both are
 * for pale_policy_free(). */
int cli_policy(const struct cli_args *args, struct pale_policy **ret_file, struct pale_policy **ret,
	       struct pale_err *err) _must_check_;
/* The same over another policy than the defaults. */
int cli_policy_over(const struct cli_args *args, const struct pale_policy *over,
		    struct pale_policy **ret_file, struct pale_policy **ret,
		    struct pale_err *err) _must_check_;
/* Is there a -p? */
bool cli_names_policy(const struct cli_args *args);
/* The -p and the policy flags of this command line as words of another that may be called anywhere:
 * to be freed, each word and the list. Files of -p become absolute; paths in flags stay as they
 * are. */
int cli_policy_words(const struct cli_args *args, char ***ret, struct pale_err *err) _must_check_;
static inline void cli_policy_freep(struct pale_policy **p)
{
	pale_policy_free(*p);
}
#define _cleanup_policy_ _cleanup_(cli_policy_freep)

/* The help text of one command, and the JSON description of all for the generators of man pages and
 * shell completions. */
void cli_print_help(FILE *f, const struct cli_command *command);
int cli_dump_commands(FILE *f, const struct cli_command *const *commands);

/* The policy flags themselves (policy_flags.c). */
const struct cli_option *cli_policy_options(void);
