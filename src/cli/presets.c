/* `pale policy presets`: the presets of network rules that there are, or one of them. Input: the
 * caller's command line, and preset files, whose text is printed escaped where it could be obeyed
 * by a terminal. */
#include "cli/cli.h"

#include <jansson.h>
#include <string.h>

#include "base/str.h"
#include "base/wrap.h"

extern const struct cli_command cli_presets_command;

enum { OPT_JSON = 1 };

static const struct cli_option options[] = {
	{OPT_JSON, 0, "json", NULL, "print JSON", NULL},
	{0},
};

static const char *text_of(const json_t *j, const char *key)
{
	const char *text = json_string_value(json_object_get(j, key));

	return text ? text : "";
}

static void print_escaped(const char *text, size_t len)
{
	_cleanup_buf_ struct buf b = BUF_INIT(8 * len + 16);

	str_escape(&b, text, len);
	fputs(b.data ? b.data : "", stdout);
}

/* A line each: name, hosts, and where it comes from if it is not part of Pale. */
static void print_list(const json_t *list)
{
	const json_t *preset, *host;
	size_t i, k;

	json_array_foreach(list, i, preset)
	{
		_cleanup_buf_ struct buf b = BUF_INIT(64u << 10);
		const char *file = text_of(preset, "file"), *error = text_of(preset, "error");

		json_array_foreach(json_object_get(preset, "hosts"), k, host)
			buf_addf(&b, "%s%s", k ? ", " : "", json_string_value(host));
		if (*file) {
			buf_adds(&b, b.len ? " (" : "(");
			str_escape(&b, file, strlen(file));
			buf_adds(&b, ")");
		}
		if (*error)
			buf_addf(&b, " broken: %s", error);
		printf("%-14s ", text_of(preset, "name"));
		wrap_print(stdout, b.data ? b.data : "", 15, 96);
	}
}

static bool is_plain(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((text[i] < ' ' && text[i] != '\t') || text[i] == 0x7f)
			return false;
	return true;
}

/* The file as it stands, line by line. */
static void print_one(const json_t *preset)
{
	const char *file = text_of(preset, "file");

	if (*file) {
		fputs("# ", stdout);
		print_escaped(file, strlen(file));
		putchar('\n');
	}
	for (const char *p = text_of(preset, "text"); *p;) {
		size_t n = strcspn(p, "\n");

		if (is_plain(p, n))
			fwrite(p, 1, n, stdout);
		else
			print_escaped(p, n);
		putchar('\n');
		p += n + (p[n] == '\n');
	}
}

static int run_presets(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_presets_command, argc, argv);
	_cleanup_free_ char *text = NULL;
	struct pale_err err;
	const char *value;
	bool json = false;
	json_t *j;
	int id;

	while ((id = cli_next(&args, &value)) > 0)
		json = true;
	if (id < 0)
		return args.status;
	if (args.argc > 1)
		return cli_usage(cli_presets_command.name, "one name at most");
	if (pale_policy_presets(args.argc ? args.argv[0] : NULL, &text, &err) < 0) {
		cli_fail(&err);
		return 1;
	}
	j = json_loads(text, 0, NULL);
	if (json) {
		json_dumpf(j, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
		putchar('\n');
	} else if (args.argc) {
		print_one(j);
	} else {
		print_list(j);
	}
	json_decref(j);
	return fflush(stdout) != 0 ? CLI_EXIT_PALE : 0;
}

const struct cli_command cli_presets_command = {
	.name = "policy presets",
	.summary = "list the presets of network rules, or show one",
	.usage = "[OPTION...] [NAME]",
	.help = "  pale policy presets pypi\n"
		"  pale run --allow preset:pypi script.py\n\n"
		"A file NAME.yaml in $XDG_CONFIG_HOME/pale/presets (~/.config/pale/presets) or in\n"
		"/etc/pale/presets takes the place of the preset NAME, or adds one. It is a "
		"policy\n"
		"that says network.allow and nothing else.\n",
	.options = options,
	.run = run_presets,
};
