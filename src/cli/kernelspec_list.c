/* pale kernelspec list, remove. Runs with the caller's rights. What lies in the directories of
 * Jupyter's kernels is the caller's, or the administrator's, and printed escaped all the same. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "cli/audit.h"
#include "cli/jupyter.h"

#define STAGE	 "cli"
#define MAX_DIRS 32

enum { OPT_JSON = 1, OPT_USER, OPT_PREFIX, OPT_SYS_PREFIX };

/* Where Jupyter looks, in its order. */
struct dirs {
	char *path[MAX_DIRS];
	size_t n;
};

static void dirs_done(struct dirs *d)
{
	while (d->n)
		free(d->path[--d->n]);
}

static void add(struct dirs *d, char *path)
{
	for (size_t i = 0; path && i < d->n; i++)
		if (strcmp(d->path[i], path) == 0) {
			free(path);
			return;
		}
	if (path && d->n < MAX_DIRS)
		d->path[d->n++] = path;
	else
		free(path);
}

/* $JUPYTER_PATH, a list of directories. */
static void add_path(struct dirs *d)
{
	for (const char *at = getenv("JUPYTER_PATH"); at && *at;) {
		size_t n = strcspn(at, ":");
		char *path = NULL;

		if (n && asprintf(&path, "%.*s/kernels", (int)n, at) >= 0)
			add(d, path);
		at = at[n] ? at + n + 1 : NULL;
	}
}

static int all_dirs(struct dirs *d, struct pale_err *err)
{
	static const char *const system[] = {"/usr/local", "/usr"};
	struct pale_err ignored;
	char *path = NULL;
	int r = 0;

	add_path(d);
	if (kernelspec_dir(KERNELSPEC_USER, NULL, NULL, &path, &ignored) == 0)
		add(d, path);
	if (kernelspec_dir(KERNELSPEC_SYS_PREFIX, NULL, NULL, &path, &ignored) == 0)
		add(d, path);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(system); i++) {
		r = kernelspec_dir(KERNELSPEC_PREFIX, system[i], NULL, &path, err);
		if (r == 0)
			add(d, path);
	}
	return r;
}

/* --- list ---------------------------------------------------------------------------------------
 */

static int compare(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* Adds what is ours in one directory. Of two with a name Jupyter takes the first. */
static int list_dir(const char *kernels, json_t *found)
{
	struct dirent **entries = NULL;
	int n = scandir(kernels, &entries, NULL, compare), r = 0;

	for (int i = 0; i < n; i++) {
		const char *name = entries[i]->d_name;
		char dir[PATH_MAX];
		json_t *spec = NULL, *pale;
		bool there;

		if (r == 0 && kernelspec_is_name(name) && !json_object_get(found, name) &&
		    snprintf(dir, sizeof(dir), "%s/%s", kernels, name) < (int)sizeof(dir))
			spec = kernelspec_load(dir, &there);
		pale = json_object_get(json_object_get(spec, "metadata"), "pale");
		if (spec)
			r = json_object_set_new(found, name,
						json_pack("{sO? sO? sO? so}", "display_name",
							  json_object_get(spec, "display_name"),
							  "python", json_object_get(pale, "python"),
							  "flags", json_object_get(pale, "flags"),
							  "directory", cli_text_or_null(dir)));
		json_decref(spec);
		free(entries[i]);
	}
	free(entries);
	return r;
}

static void print_text(const json_t *text, const char *after)
{
	_cleanup_buf_ struct buf b = BUF_INIT(8192);
	const char *s = json_string_value(text);

	if (s)
		str_escape(&b, s, strlen(s));
	printf("%s%s", b.data && !b.failed ? b.data : "?", after);
}

static void print_list(const json_t *found)
{
	const char *name;
	json_t *spec, *flag;
	size_t i;

	if (!json_object_size(found))
		printf("There is none: see `pale kernelspec install`.\n");
	json_object_foreach((json_t *)(uintptr_t)found, name, spec)
	{
		printf("%s  ", name);
		print_text(json_object_get(spec, "display_name"), "\n  ");
		print_text(json_object_get(spec, "python"), "");
		json_array_foreach(json_object_get(spec, "flags"), i, flag)
		{
			putchar(' ');
			print_text(flag, "");
		}
		printf("\n  ");
		print_text(json_object_get(spec, "directory"), "\n");
	}
}

static const struct cli_option list_options[] = {
	{OPT_JSON, 0, "json", NULL,
	 "one JSON object: name, display name, python, flags, directory"},
	{0},
};

static int run_list(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args =
		CLI_ARGS(&cli_kernelspec_list_command, argc, argv);
	_cleanup_(dirs_done) struct dirs dirs = {0};
	struct pale_err err = {0};
	json_t *found = json_object();
	const char *value;
	bool json = false;
	int id, r;

	while ((id = cli_next(&args, &value)) > 0)
		json = true;
	if (id < 0 || args.argc) {
		json_decref(found);
		return id < 0 ? args.status
			      : cli_usage(cli_kernelspec_list_command.name,
					  "no operand is expected");
	}
	r = all_dirs(&dirs, &err);
	for (size_t i = 0; r == 0 && i < dirs.n; i++)
		if (list_dir(dirs.path[i], found) < 0)
			r = err_nomem(&err, STAGE);
	if (r == 0 && json)
		json_dumpf(found, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
	if (r == 0 && json)
		putchar('\n');
	if (r == 0 && !json)
		print_list(found);
	json_decref(found);
	return r < 0 ? cli_fail(&err) : cli_flushed(0);
}

const struct cli_command cli_kernelspec_list_command = {
	.name = "kernelspec list",
	.summary = "the kernels that run in a box, where Jupyter looks for them",
	.usage = "[--json]",
	.help = "  pale kernelspec list\n",
	.options = list_options,
	.run = run_list,
};

/* --- remove -------------------------------------------------------------------------------------
 */

/* The files in it, and then it. */
static int remove_dir(const char *path, struct pale_err *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fcntl(fd, F_DUPFD_CLOEXEC, 3));
	bool failed = !dir;

	for (struct dirent *e; dir && (e = readdir(dir));)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			failed |= unlinkat(fd, e->d_name, 0) < 0;
	if (!failed)
		failed = rmdir(path) < 0;
	if (failed)
		err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot remove %s", QUOTED(path));
	if (dir)
		closedir(dir);
	return failed ? -(int)err->code : 0;
}

static int remove_one(const struct dirs *dirs, const char *name, struct pale_err *err)
{
	if (!kernelspec_is_name(name))
		return err_set(err, PALE_E_USAGE, STAGE, 0, "%s is no name of a kernel",
			       QUOTED(name));
	for (size_t i = 0; i < dirs->n; i++) {
		char dir[PATH_MAX];
		bool there;
		json_t *spec;
		int r;

		if (snprintf(dir, sizeof(dir), "%s/%s", dirs->path[i], name) >= (int)sizeof(dir))
			continue;
		spec = kernelspec_load(dir, &there);
		json_decref(spec);
		if (there && !spec)
			return err_set(err, PALE_E_CONFLICT, STAGE, 0,
				       "the kernel in %s is not Pale's: jupyter kernelspec remove",
				       QUOTED(dir));
		if (!there)
			continue;
		r = remove_dir(dir, err);
		if (r == 0)
			printf("Removed %s\n", QUOTED(dir));
		return r;
	}
	return err_set(err, PALE_E_NOTFOUND, STAGE, 0,
		       "there is no kernel %s: see `pale kernelspec "
		       "list`",
		       QUOTED(name));
}

static const struct cli_option remove_options[] = {
	{OPT_USER, 0, "user", NULL, "only this user's"},
	{OPT_PREFIX, 0, "prefix", "DIR", "only below DIR/share/jupyter", "dir"},
	{OPT_SYS_PREFIX, 0, "sys-prefix", NULL, "only of the environment that is active"},
	{0},
};

static int run_remove(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args =
		CLI_ARGS(&cli_kernelspec_remove_command, argc, argv);
	_cleanup_(dirs_done) struct dirs dirs = {0};
	struct pale_err err = {0};
	const char *value, *prefix = NULL;
	int id, place = 0, r = 0;
	char *path = NULL;

	while ((id = cli_next(&args, &value)) > 0) {
		if (place && place != id)
			return cli_usage(args.command->name, "--user, --prefix and --sys-prefix "
							     "exclude each other");
		place = id;
		prefix = value;
	}
	if (id < 0)
		return args.status;
	if (!args.argc)
		return cli_usage(args.command->name, "which? see `pale kernelspec list`");
	if (place) {
		r = kernelspec_dir(place == OPT_USER	 ? KERNELSPEC_USER
				   : place == OPT_PREFIX ? KERNELSPEC_PREFIX
							 : KERNELSPEC_SYS_PREFIX,
				   prefix, NULL, &path, &err);
		add(&dirs, path);
	} else {
		r = all_dirs(&dirs, &err);
	}
	for (int i = 0; r == 0 && i < args.argc; i++)
		r = remove_one(&dirs, args.argv[i], &err);
	return r < 0 ? cli_fail(&err) : cli_flushed(0);
}

const struct cli_command cli_kernelspec_remove_command = {
	.name = "kernelspec remove",
	.summary = "remove kernels that run in a box",
	.usage = "[OPTION...] NAME...",
	.help = "  pale kernelspec remove pale\n",
	.options = remove_options,
	.run = run_remove,
};
