/* pale kernelspec: kernels for Jupyter that run in a box: install. list and remove are in
 * kernelspec_list.c. Runs with the caller's rights; writes two small files into a directory where
 * Jupyter looks for kernels. Hostile, a little: what an interpreter prints that is tried in a box.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/audit.h"
#include "cli/jupyter.h"

#define STAGE	     "cli"
#define DEFAULT_NAME "pale"
#define MAX_BYTES    65536

enum {
	OPT_USER = 1,
	OPT_PREFIX,
	OPT_SYS_PREFIX,
	OPT_NAME,
	OPT_DISPLAY_NAME,
	OPT_PYTHON,
	OPT_NO_CHECK,
};
static const struct cli_option options[] = {
	{OPT_USER, 0, "user", NULL,
	 "for this user (the default): below ~/.local/share/jupyter, or "
	 "$JUPYTER_DATA_DIR"},
	{OPT_PREFIX, 0, "prefix", "DIR", "below DIR/share/jupyter; /usr/local is for all users",
	 "dir"},
	{OPT_SYS_PREFIX, 0, "sys-prefix", NULL,
	 "in the environment (venv, conda) of the interpreter, or the one that is active"},
	{OPT_NAME, 0, "name", "NAME", "the kernel's name for Jupyter (default: " DEFAULT_NAME ")",
	 "any"},
	{OPT_DISPLAY_NAME, 0, "display-name", "TEXT",
	 "the name that people see (default: Python 3 (Pale))", "any"},
	{OPT_PYTHON, 0, "python", "PYTHON",
	 "the interpreter that has ipykernel (default: python3, as the shell finds it)", "command"},
	{OPT_NO_CHECK, 0, "no-check", NULL,
	 "don't try in a box whether the interpreter has ipykernel"},
	{0},
};

/* A fence, and what is beyond it. */
static const char logo[] =
	"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 64 64\">\n"
	"<rect width=\"64\" height=\"64\" rx=\"10\" fill=\"#1f3a3d\"/>\n"
	"<circle cx=\"32\" cy=\"20\" r=\"9\" fill=\"#f2b84b\"/>\n"
	"<path fill=\"#e9efe6\" d=\"M6 54V32l5-6 5 6v22zM20 54V32l5-6 5 6v22zM34 54V32l5-6 5 6v22z"
	"M48 54V32l5-6 5 6v22z\"/>\n"
	"<path fill=\"#b9c8b7\" d=\"M3 37h58v4H3zM3 46h58v4H3z\"/>\n"
	"</svg>\n";

/* --- where --------------------------------------------------------------------------------------
 */

bool kernelspec_is_name(const char *name)
{
	static const char set[] = "abcdefghijklmnopqrstuvwxyz0123456789._-";

	return *name && *name != '.' && *name != '-' && strlen(name) <= 64 &&
	       name[strspn(name, set)] == '\0';
}

static bool has(const char *dir, const char *name)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s", dir, name);

	return n > 0 && n < (int)sizeof(path) && access(path, F_OK) == 0;
}

/* The environment that PYTHON is of: its directory, two up from the program. */
static bool environment_of(const char *python, char ret[static PATH_MAX])
{
	int n = snprintf(ret, PATH_MAX, "%s", python);

	if (*python != '/' || n >= PATH_MAX)
		return false;
	for (int i = 0; i < 2; i++) {
		char *slash = strrchr(ret, '/');

		if (!slash)
			return false;
		*slash = '\0';
	}
	return has(ret, "pyvenv.cfg") || has(ret, "conda-meta");
}

static int below(char **ret, const char *dir, const char *rest, struct pale_err *err)
{
	_cleanup_free_ char *cwd = *dir == '/' ? NULL : getcwd(NULL, 0);
	size_t n = strlen(dir);

	while (n > 1 && dir[n - 1] == '/')
		n--;
	if (asprintf(ret, "%s%s%.*s%s", cwd ? cwd : "", cwd ? "/" : "", (int)n, dir, rest) >= 0)
		return 0;
	*ret = NULL;
	return err_nomem(err, STAGE);
}

int kernelspec_dir(enum kernelspec_place place, const char *prefix, const char *python, char **ret,
		   struct pale_err *err)
{
	const char *data = getenv("JUPYTER_DATA_DIR"), *xdg = getenv("XDG_DATA_HOME"),
		   *home = getenv("HOME"), *venv = getenv("VIRTUAL_ENV"),
		   *conda = getenv("CONDA_PREFIX");
	char environment[PATH_MAX];

	switch (place) {
	case KERNELSPEC_PREFIX: return below(ret, prefix, "/share/jupyter/kernels", err);
	case KERNELSPEC_SYS_PREFIX:
		if (python && environment_of(python, environment))
			return below(ret, environment, "/share/jupyter/kernels", err);
		if ((venv && *venv) || (conda && *conda))
			return below(ret, venv && *venv ? venv : conda, "/share/jupyter/kernels",
				     err);
		return err_set(err, PALE_E_USAGE, STAGE, 0,
			       "--sys-prefix: no environment is active; name one with --python or "
			       "--prefix");
	case KERNELSPEC_USER:
		if (data && *data)
			return below(ret, data, "/kernels", err);
		if (xdg && *xdg)
			return below(ret, xdg, "/jupyter/kernels", err);
		if (home && *home)
			return below(ret, home, "/.local/share/jupyter/kernels", err);
	}
	return err_set(err, PALE_E_USAGE, STAGE, 0, "there is no HOME to install into");
}

json_t *kernelspec_load(const char *dir, bool *ret_there)
{
	_cleanup_buf_ struct buf text = BUF_INIT(MAX_BYTES);
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];
	json_t *o = NULL;
	int n = snprintf(path, sizeof(path), "%s/kernel.json", dir);

	*ret_there = false;
	if (n < 0 || n >= (int)sizeof(path))
		return NULL;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	*ret_there = fd >= 0;
	if (fd >= 0 && buf_read_fd(&text, fd) == 0)
		o = json_loadb(text.data ? text.data : "", text.len, 0, NULL);
	if (json_is_object(json_object_get(json_object_get(o, "metadata"), "pale")))
		return o;
	json_decref(o);
	return NULL;
}

/* --- the interpreter -----------------------------------------------------------------------------
 */

/* As the shell finds it, absolute, but not further: a link in a virtual environment is its name. */
static int find_python(const char *python, char **ret, struct pale_err *err)
{
	const char *path = getenv("PATH");

	if (strchr(python, '/'))
		return access(python, X_OK) < 0 ? err_set(err, PALE_E_NOTFOUND, STAGE, errno,
							  "the interpreter %s", QUOTED(python))
						: below(ret, python, "", err);
	for (const char *at = path; at && *at;) {
		size_t n = strcspn(at, ":");
		_cleanup_free_ char *found = NULL;
		struct stat st;

		if (*at == '/' && asprintf(&found, "%.*s/%s", (int)n, at, python) < 0)
			return err_nomem(err, STAGE);
		if (found && stat(found, &st) == 0 && S_ISREG(st.st_mode) &&
		    access(found, X_OK) == 0) {
			*ret = take_ptr(found);
			return 0;
		}
		at = at[n] ? at + n + 1 : NULL;
	}
	return err_set(err, PALE_E_NOTFOUND, STAGE, 0, "there is no %s in $PATH", QUOTED(python));
}

/* Where it says itself that it is, if it is there: behind a version manager's shim. */
static int take_executable(const char *said, char **python, struct pale_err *err)
{
	char *copy;

	if (!said || *said != '/' || access(said, X_OK) < 0)
		return 0;
	copy = strdup(said);
	if (!copy)
		return err_nomem(err, STAGE);
	free(*python);
	*python = copy;
	return 0;
}

/* Runs it in a box as the kernel will be. */
static int try_python(const struct pale_policy *policy, char **python, struct pale_err *err)
{
	static const char code[] = "import json, sys\n"
				   "try:\n"
				   "    import ipykernel_launcher, ipykernel.kernelapp\n"
				   "    why = ''\n"
				   "except ImportError as e:\n"
				   "    why = str(e)\n"
				   "print(json.dumps({'python': sys.executable, 'why': why}))\n";
	const char *argv[] = {*python, "-c", code, NULL};
	struct pale_command command = {.size = sizeof(command), .argv = argv};
	struct pale_run_options how = {.size = sizeof(how),
				       .keep_output = true,
				       .in_process = true,
				       .handle_signals = true};
	struct pale_result *result = NULL;
	const char *out, *why;
	json_t *said;
	int r = pale_run(policy, &command, &how, &result, err);

	/* Such as a path that is there only beside a notebook. */
	if (r < 0)
		err_add(err, "; --no-check installs without trying it");
	if (r < 0)
		return r;
	out = pale_result_output(result, PALE_STDOUT, NULL);
	said = out ? json_loads(out, 0, NULL) : NULL;
	why = json_string_value(json_object_get(said, "why"));
	if (!why)
		r = err_set(err, PALE_E_NOTFOUND, STAGE, 0,
			    "the interpreter %s was tried in a box and failed: %s; see `pale audit "
			    "show %s`",
			    QUOTED(*python), pale_result_summary(result),
			    pale_result_audit_id(result));
	else if (*why)
		r = err_set(err, PALE_E_NOTFOUND, STAGE, 0,
			    "%s cannot load ipykernel in a box: %s; install it there (apt install "
			    "python3-ipykernel, or pip install ipykernel), or name another "
			    "interpreter with --python",
			    QUOTED(*python), QUOTED(why));
	else
		r = take_executable(json_string_value(json_object_get(said, "python")), python,
				    err);
	json_decref(said);
	pale_result_free(result);
	return r;
}

/* --- writing -------------------------------------------------------------------------------------
 */

/* Each of the directories that is not there. */
static int make_dirs(const char *path, struct pale_err *err)
{
	_cleanup_free_ char *copy = strdup(path);

	if (!copy)
		return err_nomem(err, STAGE);
	for (char *slash = copy; slash;) {
		slash = strchr(slash + 1, '/');
		if (slash)
			*slash = '\0';
		if (mkdir(copy, 0755) < 0 && errno != EEXIST)
			return err_set(err, PALE_E_SYSTEM, STAGE, errno,
				       "cannot make the directory %s", QUOTED(copy));
		if (slash)
			*slash = '/';
	}
	return 0;
}

static int write_file(const char *dir, const char *name, const char *text, struct pale_err *err)
{
	char path[PATH_MAX], made[PATH_MAX];
	_cleanup_close_ int fd = -1;
	int r = 0;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path) ||
	    snprintf(made, sizeof(made), "%s/.%s.new", dir, name) >= (int)sizeof(made))
		return err_set(err, PALE_E_USAGE, STAGE, ENAMETOOLONG, "the directory %s",
			       QUOTED(dir));
	fd = open(made, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	r = fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
	if (r == 0 && rename(made, path) < 0)
		r = -errno;
	if (r == 0)
		return 0;
	unlink(made);
	return err_set(err, PALE_E_SYSTEM, STAGE, -r, "cannot write %s", QUOTED(path));
}

/* The command that is this program, wherever Jupyter is started. */
static int self(char ret[static PATH_MAX], struct pale_err *err)
{
	ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX - 1);

	if (n < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot tell where pale is");
	ret[n] = '\0';
	return 0;
}

static json_t *texts(char *const *words)
{
	json_t *list = json_array();

	for (; *words; words++)
		if (json_array_append_new(list, json_string(*words)) < 0) {
			json_decref(list);
			return NULL; /* not UTF-8 */
		}
	return list;
}

static int spec_text(const char *display, const char *python, char **words, char **ret,
		     struct pale_err *err)
{
	char pale[PATH_MAX];
	json_t *argv, *flags = texts(words), *spec;
	int r = self(pale, err);

	argv = json_pack("[s? s s s s s?]", pale, "jupyter-kernel", "-f", "{connection_file}",
			 "--python", python);
	if (argv && flags)
		json_array_extend(argv, flags);
	/* What Jupyter adds after it is ipykernel's. */
	if (argv)
		json_array_append_new(argv, json_string("--"));
	spec = json_pack("{so ss? ss ss s{sb s{ss so}}}", "argv", argv, "display_name", display,
			 "language", "python", "interrupt_mode", "signal", "metadata", "debugger",
			 0, "pale", "python", python, "flags", flags);
	*ret = r == 0 && spec ? json_dumps(spec, JSON_INDENT(1) | JSON_PRESERVE_ORDER) : NULL;
	json_decref(spec);
	if (*ret)
		return 0;
	return r < 0 ? r
		     : err_set(err, PALE_E_USAGE, STAGE, 0,
			       "paths and names in a kernel of Jupyter's have to be UTF-8");
}

static int write_spec(const char *dir, const char *name, const char *text, struct pale_err *err)
{
	_cleanup_free_ char *line = NULL;
	bool there;
	json_t *old = kernelspec_load(dir, &there);
	int r;

	json_decref(old);
	if (there && !old)
		return err_set(
			err, PALE_E_CONFLICT, STAGE, 0,
			"%s holds another kernel, which is not Pale's; choose another --name "
			"than %s",
			QUOTED(dir), name);
	if (asprintf(&line, "%s\n", text) < 0) {
		line = NULL;
		return err_nomem(err, STAGE);
	}
	r = make_dirs(dir, err);
	if (r == 0)
		r = write_file(dir, "logo-svg.svg", logo, err);
	return r == 0 ? write_file(dir, "kernel.json", line, err) : r;
}

/* --- the command ---------------------------------------------------------------------------------
 */

struct install {
	enum kernelspec_place place;
	const char *prefix, *name, *display, *python;
	bool check;
};

static int install(const struct cli_args *args, const struct install *in, struct pale_err *err)
{
	_cleanup_policy_ struct pale_policy *base = NULL, *policy = NULL;
	_cleanup_free_ char *python = NULL, *kernels = NULL, *dir = NULL, *text = NULL;
	char **words = NULL;
	bool ignored;
	int r = find_python(in->python, &python, err);

	if (r == 0)
		r = cli_policy_words(args, &words, err);
	if (r == 0)
		r = jupyter_policy(args, NULL, &base, &policy, &ignored, err);
	if (r == 0 && in->check)
		r = try_python(policy, &python, err);
	if (r == 0)
		r = kernelspec_dir(in->place, in->prefix, python, &kernels, err);
	if (r == 0 && asprintf(&dir, "%s/%s", kernels, in->name) < 0) {
		dir = NULL;
		r = err_nomem(err, STAGE);
	}
	if (r == 0)
		r = spec_text(in->display, python, words, &text, err);
	if (r == 0)
		r = write_spec(dir, in->name, text, err);
	for (char **w = words; w && *w; w++)
		free(*w);
	free(words);
	if (r == 0)
		printf("Installed the kernel %s, with %s, in %s\n", in->name, QUOTED(python),
		       QUOTED(dir));
	return r;
}

static int run_install(int argc, char **argv)
{
	extern const struct cli_command cli_kernelspec_install_command;
	const struct cli_command *command = &cli_kernelspec_install_command;
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(command, argc, argv);
	struct install in = {.name = DEFAULT_NAME,
			     .display = "Python 3 (Pale)",
			     .python = "python3",
			     .check = true};
	struct pale_err err = {0};
	unsigned places = 0;
	const char *value;
	int id;

	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_USER:
			in.place = KERNELSPEC_USER;
			places++;
			break;
		case OPT_PREFIX:
			in.place = KERNELSPEC_PREFIX;
			in.prefix = value;
			places++;
			break;
		case OPT_SYS_PREFIX:
			in.place = KERNELSPEC_SYS_PREFIX;
			places++;
			break;
		case OPT_NAME: in.name = value; break;
		case OPT_DISPLAY_NAME: in.display = value; break;
		case OPT_PYTHON: in.python = value; break;
		case OPT_NO_CHECK: in.check = false; break;
		}
	if (id < 0)
		return args.status;
	if (args.argc)
		return cli_usage(command->name, "no operand is expected; see --name");
	if (places > 1)
		return cli_usage(command->name, "--user, --prefix and --sys-prefix exclude each "
						"other");
	if (!kernelspec_is_name(in.name))
		return cli_usage(command->name,
				 "--name %s: small letters, digits, dots, dashes and underscores",
				 QUOTED(in.name));
	if (install(&args, &in, &err) < 0)
		return cli_fail(&err);
	return cli_flushed(0);
}

const struct cli_command cli_kernelspec_install_command = {
	.name = "kernelspec install",
	.summary = "make a kernel for Jupyter that runs in a box",
	.usage = "[OPTION...]",
	.help = "  pale kernelspec install\n"
		"  pale kernelspec install --python ~/venv/bin/python --name pale-venv \\\n"
		"      --display-name 'Python 3 (Pale, venv)'\n"
		"  pale kernelspec install --name pale-pypi --allow preset:pypi --memory 8GiB\n"
		"  pale kernelspec install --prefix /usr/local -p /etc/pale/notebook.yaml\n"
		"\n"
		"The policy options are kept in the kernel and hold for each of its starts. "
		"Without -p "
		"it\n"
		"is the policy `notebook`: the notebook's directory, copy on write, and no "
		"network. Paths "
		"of\n"
		"--ro, --overlay and the like that are relative count from the notebook's "
		"directory.\n",
	.options = options,
	.policy_flags = true,
	.run = run_install,
};

static const struct cli_command *const subcommands[] = {
	&cli_kernelspec_install_command,
	&cli_kernelspec_list_command,
	&cli_kernelspec_remove_command,
	NULL,
};

const struct cli_command cli_kernelspec_command = {
	.name = "kernelspec",
	.summary = "kernels for JupyterLab, VS Code and nbclient that run in a box",
	.usage = "COMMAND [ARG...]",
	.help = "Jupyter offers them beside its own kernels, and the notebook's code runs in a "
		"box: the\n"
		"real ipykernel, with everything of it. docs/jupyter.md says what that is worth, "
		"and what\n"
		"it is not: JupyterLab runs the JavaScript of outputs.",
	.subcommands = subcommands,
};
