/* pale jupyter-kernel: what a kernelspec made by `pale kernelspec install` runs: the real
 * ipykernel, unmodified, in a box.
 *
 * Jupyter starts it as it starts any kernel, in the notebook's directory, and treats it as one:
 * SIGINT interrupts, SIGTERM and SIGKILL end, and when Jupyter itself is gone it ends. It is the
 * box's supervisor. The five channels of Jupyter's messaging are published byte for byte; nothing
 * of what is said there is read here. Trusted: the command line, the connection file, the policy.
 * Hostile: what the kernel prints on its own standard streams. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/jupyter.h"

#define STAGE	  "cli"
/* Jupyter gives a kernel 5 seconds from its request to the SIGKILL, the half of it to the SIGTERM;
 * what is left then is for taking the changes out. */
#define GRACE_MS  1000
#define WAIT_MS	  5000
#define LINE_MAX_ 4096
/* In the box's HOME: beside the connection file that ipykernel writes for what runs in the box. */
#define KEY_FILE  ".local/share/jupyter/runtime/pale-key"

enum { OPT_FILE = 1, OPT_PYTHON, OPT_QUIET };
static const struct cli_option options[] = {
	{OPT_FILE, 'f', "connection-file", "FILE", "the connection file that Jupyter has made",
	 "file"},
	{OPT_PYTHON, 0, "python", "PYTHON",
	 "the interpreter that has ipykernel (default: python3, as the caller's shell finds it)",
	 "command"},
	{OPT_QUIET, 'q', "quiet", NULL, "no line about limits and blocked attempts at the end"},
	{0},
};

/* --- the policy --------------------------------------------------------------------------------
 */

/* Is `dir` the caller's home directory, or does it hold it? */
static bool holds_home(const char *dir)
{
	const char *home = getenv("HOME");
	_cleanup_free_ char *real = realpath(dir, NULL);
	_cleanup_free_ char *real_home = home && *home == '/' ? realpath(home, NULL) : NULL;
	size_t n;

	if (!real || strcmp(real, "/") == 0)
		return true;
	n = strlen(real);
	return real_home && strncmp(real, real_home, n) == 0 &&
	       (real_home[n] == '\0' || real_home[n] == '/');
}

/* `notebook`, and nothing of the host's files. */
static int without_files(struct pale_policy **ret, struct pale_err *err)
{
	_cleanup_policy_ struct pale_policy *whole = NULL;
	_cleanup_free_ char *text = NULL, *less = NULL;
	json_t *o;
	int r = pale_policy_new(&whole, err);

	if (r >= 0)
		r = pale_policy_load(whole, "notebook", err);
	if (r >= 0)
		r = pale_policy_json(whole, &text, err);
	if (r < 0)
		return r;
	o = json_loads(text, 0, NULL);
	json_object_del(o, "files");
	less = o ? json_dumps(o, JSON_COMPACT) : NULL;
	json_decref(o);
	if (!less)
		return err_nomem(err, STAGE);
	return pale_policy_load_text(*ret, less, strlen(less), "notebook, without files", NULL,
				     true, err);
}

int jupyter_policy(const struct cli_args *args, const char *cwd, struct pale_policy **ret_base,
		   struct pale_policy **ret, bool *ret_home, struct pale_err *err)
{
	_cleanup_policy_ struct pale_policy *base = NULL;
	int r = pale_policy_new(&base, err);

	*ret_home = false;
	if (r >= 0 && !cli_names_policy(args)) {
		*ret_home = cwd && holds_home(cwd);
		r = cwd && !*ret_home ? pale_policy_load(base, "notebook", err)
				      : without_files(&base, err);
	}
	return r < 0 ? r : cli_policy_over(args, base, ret_base, ret, err);
}

/* --- what the kernel prints itself -------------------------------------------------------------
 */

/* Its lines go where Jupyter's own do, often a terminal: escaped, and never waited for. Output of
 * the notebook's code goes by the channels instead. */
struct passed {
	struct buf line[2];
};

static bool is_harmless(char c)
{
	return c == '\t' || c == '"' || c == '\\';
}

static void put_line(int fd, struct buf *line)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4 * LINE_MAX_ + 1);
	struct pollfd out = {fd, POLLOUT, 0};

	/* Tracebacks are full of quotes, and no terminal obeys one. */
	for (size_t at = 0, end = 0; at < line->len; at = end) {
		bool as_it_is = is_harmless(line->data[at]);

		while (end < line->len && is_harmless(line->data[end]) == as_it_is)
			end++;
		if (as_it_is)
			buf_add(&b, line->data + at, end - at);
		else
			str_escape(&b, line->data + at, end - at);
	}
	buf_add(&b, "\n", 1);
	if (!b.failed && poll(&out, 1, 0) > 0)
		(void)!write(fd, b.data, b.len < PIPE_BUF ? b.len : PIPE_BUF);
	line->len = 0;
}

static void on_output(void *arg, enum pale_stream stream, const char *data, size_t len)
{
	struct passed *p = arg;
	struct buf *line = &p->line[stream == PALE_STDERR];
	int fd = stream == PALE_STDERR ? STDERR_FILENO : STDOUT_FILENO;

	for (size_t i = 0; i < len; i++) {
		if (data[i] != '\n')
			buf_add(line, data + i, 1);
		if (data[i] == '\n' || line->len == LINE_MAX_)
			put_line(fd, line);
	}
}

static void flush(struct passed *p)
{
	for (int i = 0; i < 2; i++) {
		if (p->line[i].len)
			put_line(i ? STDERR_FILENO : STDOUT_FILENO, &p->line[i]);
		buf_done(&p->line[i]);
	}
}

/* --- the kernel --------------------------------------------------------------------------------
 */

static void nothing(int signal_number)
{
	(void)signal_number;
}

/* The process whose end is ours: Jupyter's, which it tells its kernels, or whoever started us. A
 * descriptor, 0 if there is none to watch, or negative if it is gone already. */
static int parent_pidfd(void)
{
	const char *text = getenv("JPY_PARENT_PID");
	pid_t parent = getppid();
	uint64_t n;
	int fd = -1;

	if (text && num_parse_u64(text, INT_MAX, &n) == 0 && n > 0)
		fd = (int)syscall(SYS_pidfd_open, (pid_t)n, 0);
	if (fd >= 0)
		return fd;
	/* 1 is whoever takes orphans: it was not that which started us. */
	if (parent <= 1)
		return 0;
	fd = (int)syscall(SYS_pidfd_open, parent, 0);
	return fd < 0 || getppid() != parent ? -1 : fd;
}

static int key_file(const struct pale_policy *policy, char **ret, struct pale_err *err)
{
	_cleanup_free_ char *text = NULL;
	int r = pale_policy_json(policy, &text, err), n;
	json_t *o;
	const char *user;

	if (r < 0)
		return r;
	o = json_loads(text, 0, NULL);
	user = json_string_value(json_object_get(o, "user"));
	n = user && strcmp(user, "root") == 0
		    ? asprintf(ret, "/root/" KEY_FILE)
		    : asprintf(ret, "/home/%s/" KEY_FILE, user ? user : "agent");
	json_decref(o);
	if (n >= 0)
		return 0;
	*ret = NULL;
	return err_nomem(err, STAGE);
}

/* What a kernel in a box needs besides its policy, in the policy and in its base: it is no wish of
 * the caller's. */
static int add_own(struct pale_policy *p, const struct jupyter_connection *c, struct pale_err *err)
{
	int r = 0;

	pale_policy_origin(p, "pale jupyter-kernel");
	for (size_t i = 0; r >= 0 && i < JUPYTER_CHANNELS; i++)
		r = pale_policy_publish(p, c->publish[i], err);
	/* ipykernel watches its parent, and takes process 1 for one that lives: so it is here. */
	if (r >= 0)
		r = pale_policy_env(p, "JPY_PARENT_PID", "1", err);
	/* Without a debugger, its warning about frozen modules is none of anybody's. */
	if (r >= 0)
		r = pale_policy_env(p, "PYDEVD_DISABLE_FILE_VALIDATION", "1", err);
	pale_policy_origin(p, NULL);
	return r;
}

/* PYTHON -m ipykernel_launcher OPTION... [MORE...]: the list is to be freed, its words are others'.
 */
static int make_argv(const struct jupyter_connection *c, const char *python, char *key_option,
		     char **more, const char ***ret, struct pale_err *err)
{
	size_t nmore = 0, n = 0;
	const char **argv;

	while (more[nmore])
		nmore++;
	*ret = argv = calloc(nmore + ARRAY_SIZE(c->options) + 5, sizeof(*argv));
	if (!argv)
		return err_nomem(err, STAGE);
	argv[n++] = python;
	argv[n++] = "-m";
	argv[n++] = "ipykernel_launcher";
	for (size_t i = 0; i < ARRAY_SIZE(c->options); i++)
		argv[n++] = c->options[i];
	argv[n++] = key_option;
	memcpy(argv + n, more, nmore * sizeof(*argv));
	return 0;
}

static int start(const struct jupyter_connection *c, const struct pale_policy *base,
		 const struct pale_policy *policy, const char *python, char **more, int parent,
		 struct pale_result **ret, struct pale_err *err)
{
	_cleanup_free_ char *key = NULL, *key_option = NULL;
	_cleanup_free_ const char **argv = NULL;
	struct passed passed = {{BUF_INIT(LINE_MAX_ + 1), BUF_INIT(LINE_MAX_ + 1)}};
	struct pale_file file = {.content = c->key};
	struct pale_command command = {.size = sizeof(command), .files = &file, .nfiles = 1};
	struct pale_run_options how = {
		.size = sizeof(how),
		.use_fds = true,
		.in = -1,
		.out = -1,
		.err = -1,
		.on_output = on_output,
		.arg = &passed,
		.in_process = true,
		.handle_signals = true,
		.interrupts_only = true,
		.grace_ms = GRACE_MS,
		.parent_pidfd = parent,
		.base_policy = base,
	};
	int r = key_file(policy, &key, err);

	if (r == 0 && asprintf(&key_option, "--Session.keyfile=%s", key) < 0) {
		key_option = NULL;
		r = err_nomem(err, STAGE);
	}
	if (r == 0)
		r = make_argv(c, python, key_option, more, &argv, err);
	if (r < 0)
		return r;
	file.path = key;
	command.argv = argv;
	jupyter_connection_wait(c, WAIT_MS);
	r = pale_run(policy, &command, &how, ret, err);
	flush(&passed);
	return r;
}

static int run(int argc, char **argv)
{
	extern const struct cli_command cli_jupyter_kernel_command;
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_jupyter_kernel_command, argc, argv);
	_cleanup_policy_ struct pale_policy *base = NULL, *policy = NULL;
	_cleanup_(jupyter_connection_done) struct jupyter_connection connection = {0};
	_cleanup_free_ char *cwd = NULL;
	struct sigaction interrupt = {.sa_handler = nothing, .sa_flags = SA_RESTART};
	struct pale_result *result = NULL;
	struct pale_err err = {0};
	const char *value, *file = NULL, *python = "python3";
	bool quiet = false, home;
	int id, status, parent;

	/* An interrupt that comes before there is something to interrupt is none. (Not ignored:
	 * that would mean that it stays so.) */
	sigaction(SIGINT, &interrupt, NULL);
	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_FILE: file = value; break;
		case OPT_PYTHON: python = value; break;
		case OPT_QUIET: quiet = true; break;
		}
	if (id < 0)
		return args.status;
	if (!file)
		return cli_usage(args.command->name,
				 "-f FILE is missing: Jupyter starts this command, by the kernel "
				 "that `pale kernelspec install` makes");
	parent = parent_pidfd();
	if (parent < 0) {
		fprintf(stderr, "pale: cli: who started this kernel has ended\n");
		return CLI_EXIT_PALE;
	}
	cwd = getcwd(NULL, 0);
	if (jupyter_connection_read(file, &connection, &err) < 0 ||
	    jupyter_policy(&args, cwd, &base, &policy, &home, &err) < 0 ||
	    add_own(base, &connection, &err) < 0 || add_own(policy, &connection, &err) < 0)
		return cli_fail(&err);
	if (home)
		fprintf(stderr, "pale: this kernel runs in your home directory, of which it is "
				"shown nothing: "
				"put notebooks and their data into a directory of their own, or "
				"say with -p or "
				"--ro what it may see\n");
	if (start(&connection, base, policy, python, args.argv, parent, &result, &err) < 0)
		return cli_fail(&err);
	status = pale_result_exit_status(result);
	if (err.code != PALE_OK)
		cli_fail(&err);
	if (!quiet)
		cli_print_summary(result);
	pale_result_free(result);
	pale_audit_prune_daily();
	return status;
}

const struct cli_command cli_jupyter_kernel_command = {
	.name = "jupyter-kernel",
	.summary = "run Jupyter's Python kernel in a box; Jupyter does it by itself",
	.usage = "[OPTION...] -f FILE [--] [ARG...]",
	.help = "Runs ipykernel, as it is installed, in a box, and publishes its channels where "
		"the\n"
		"connection file FILE says: at ports of loopback, or at Unix sockets. `pale "
		"kernelspec\n"
		"install` makes the kernel that Jupyter starts this by. ARGs are ipykernel's.\n"
		"\n"
		"  pale jupyter-kernel -f kernel.json\n"
		"  pale jupyter-kernel -f kernel.json --python venv/bin/python --allow "
		"preset:pypi\n"
		"\n"
		"Without -p the policy is `notebook`: the working directory, which is the "
		"notebook's,\n"
		"copy on write. If that is your home directory, nothing of it is shown. SIGINT "
		"interrupts\n"
		"what runs and nothing else; SIGTERM, and the end of Jupyter ($JPY_PARENT_PID, or "
		"the\n"
		"parent), end the box. What was changed is kept: see `pale diff`.\n"
		"\n"
		"Exit status: as of `pale run`.\n",
	.run = run,
	.options = options,
	.policy_flags = true,
	.stop_at_operand = true,
	.usage_status = CLI_EXIT_PALE,
};
