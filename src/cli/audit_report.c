/* pale audit report: one run as a page. Runs with the caller's privileges outside any box. */
#include <fcntl.h>

#include "cli/audit.h"

#include "base/str.h"

enum { OPT_OUTPUT = 1 };
static const struct cli_option options[] = {
	{OPT_OUTPUT, 'o', "output", "FILE", "write to FILE, not to stdout", .complete = "file"},
	{0},
};

static int run(int argc, char **argv);
const struct cli_command cli_audit_report_command = {
	.name = "audit report",
	.summary = "a run as an HTML page",
	.usage = "[-o FILE] [RUN]",
	.help = "Writes one self-contained page (no script, nothing loaded): how a run ended, what "
		"was\n"
		"blocked and when, what it used, its code and every event.\n"
		"\n"
		"  pale audit report last -o report.html",
	.options = options,
	.run = run,
};

static int run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_audit_report_command, argc, argv);
	_cleanup_file_ FILE *file = NULL;
	const char *value, *output = NULL;
	struct pale_err err = {0};
	char id[PALE_ID_SIZE];
	int option;

	while ((option = cli_next(&args, &value)) > 0)
		output = value;
	if (option < 0)
		return args.status;
	if (args.argc > 1)
		return cli_usage("audit report", "one run at a time: %s", QUOTED(args.argv[1]));
	cli_audit_recover();
	if (cli_audit_run(&args, id, &err) < 0)
		return cli_fail(&err);
	if (output) {
		int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

		file = fd < 0 ? NULL : fdopen(fd, "w");
		if (!file) {
			err_set(&err, PALE_E_SYSTEM, "audit", errno, "opening %s", QUOTED(output));
			return cli_fail(&err);
		}
	}
	if (pale_audit_report(id, file ? file : stdout, &err) < 0)
		return cli_fail(&err);
	if (file && fflush(file) != 0) {
		err_set(&err, PALE_E_SYSTEM, "audit", errno, "writing %s", QUOTED(output));
		return cli_fail(&err);
	}
	return cli_flushed(0);
}
