/* The command: see command.h. In the supervisor; what the caller typed is trusted, the files that
 * it names are only looked at. */
#include "command.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/str.h"
#include "plan/interpreter.h"
#include "plan/kernel.h"
#include "plan/trust.h"

#define STAGE	 "plan"
#define MAX_CODE (16u << 20) /* of a script's text in the audit log */

/* A NULL-terminated list of strings that is owned by the plan. */
struct list {
	char **items;
	size_t n, cap;
};

static int list_add(struct list *l, const char *s, struct pale_err *err)
{
	if (l->n + 2 > l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 32;
		char **items = reallocarray(l->items, cap, sizeof(*items));

		if (!items)
			return err_nomem(err, STAGE);
		l->items = items;
		l->cap = cap;
	}
	l->items[l->n] = strdup(s);
	if (!l->items[l->n])
		return err_nomem(err, STAGE);
	l->items[++l->n] = NULL;
	return 0;
}

static const char *env_get(char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; env && *env; env++)
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}

/* Sets NAME=VALUE, in place of an earlier one. */
static int env_set(struct list *l, const char *name, const char *value, struct pale_err *err)
{
	_cleanup_free_ char *line = NULL;
	size_t n = strlen(name);

	if (asprintf(&line, "%s=%s", name, value) < 0) {
		line = NULL;
		return err_nomem(err, STAGE);
	}
	for (size_t i = 0; i < l->n; i++)
		if (strncmp(l->items[i], name, n) == 0 && l->items[i][n] == '=') {
			free(l->items[i]);
			l->items[i] = take_ptr(line);
			return 0;
		}
	return list_add(l, line, err);
}

static int make_env(struct plan *p, const struct plan_request *req, const struct toolchain *t,
		    struct pale_err *err)
{
	_cleanup_buf_ struct buf path = BUF_INIT(65536);
	const char *term = env_get(req->env, "TERM"), *columns = env_get(req->env, "COLORTERM");
	const char *name, *value;
	struct list l = {0};
	int r;

	for (size_t i = 0; i < t->npath_dirs; i++)
		buf_addf(&path, "%s:", t->path_dirs[i]);
	buf_addf(&path,
		 "%s/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		 p->home);
	if (path.failed)
		return err_nomem(err, STAGE);
	r = env_set(&l, "PATH", path.data, err);
	if (r == 0)
		r = env_set(&l, "HOME", p->home, err);
	if (r == 0)
		r = env_set(&l, "USER", p->user, err);
	if (r == 0)
		r = env_set(&l, "LOGNAME", p->user, err);
	if (r == 0)
		r = env_set(&l, "SHELL", "/bin/bash", err);
	if (r == 0)
		r = env_set(&l, "LANG", "C.UTF-8", err);
	if (r == 0)
		r = env_set(&l, "PALE_BOX", "1", err);
	if (r == 0 && req->tty)
		r = env_set(&l, "TERM", term ? term : "xterm-256color", err);
	if (r == 0 && req->tty && columns)
		r = env_set(&l, "COLORTERM", columns, err);
	for (size_t i = 0; r == 0 && i < t->nenv; i++)
		r = env_set(&l, t->env[i].name, t->env[i].value, err);
	for (size_t i = 0; r == 0 && (name = trust_variable(p, i, &value)); i++)
		r = env_set(&l, name, value, err);
	for (size_t i = 0; r == 0 && p->network && i < p->network->nsecrets; i++)
		if (p->network->secrets[i].env)
			r = env_set(&l, p->network->secrets[i].env, PLAN_PLACEHOLDER, err);
	if (r == 0 && p->agent_socket)
		r = env_set(&l, "SSH_AUTH_SOCK", PLAN_AGENT, err);
	for (size_t i = 0; r == 0 && i < req->policy->nenv; i++)
		r = env_set(&l, req->policy->env[i].name, req->policy->env[i].value, err);
	p->command.env = l.items;
	return r;
}

/* Is the host directory `dir` shown at its own path? */
static bool shown(const struct policy *policy, const char *dir)
{
	for (size_t i = 0; i < policy->nfiles; i++) {
		const struct policy_file *f = &policy->files[i];
		size_t n = strlen(f->path);

		if ((f->access == ACCESS_READ || f->access == ACCESS_OVERLAY) &&
		    strcmp(f->path, f->from) == 0 && strncmp(dir, f->path, n) == 0 &&
		    (dir[n] == '\0' || dir[n] == '/'))
			return true;
	}
	return false;
}

/* Is something shown, or made, below the host directory `dir` at its own path? */
static bool shown_below(const struct policy *policy, const char *dir)
{
	size_t n = strlen(dir);

	for (size_t i = 0; i < policy->nfiles; i++)
		if (policy->files[i].access != ACCESS_HIDE && n > 1 &&
		    strncmp(policy->files[i].path, dir, n) == 0 && policy->files[i].path[n] == '/')
			return true;
	return false;
}

/* Where the caller is, if that is there or can be: then names on the command line mean inside what
 * they mean outside. Else the workspace, else HOME. */
static int make_cwd(struct plan *p, const struct plan_request *req, struct pale_err *err)
{
	const char *cwd = NULL;

	for (size_t i = req->policy->nfiles; i-- > 0;)
		if (req->policy->files[i].access == ACCESS_OVERLAY)
			cwd = req->policy->files[i].path;
	if (req->cwd &&
	    (shown(req->policy, req->cwd) || (!cwd && shown_below(req->policy, req->cwd))))
		cwd = req->cwd;
	p->command.cwd = strdup(cwd ? cwd : p->home);
	return p->command.cwd ? 0 : err_nomem(err, STAGE);
}

/* The script's text, for the log. What cannot be read now will fail in its own words later. */
static int keep_script(struct plan *p, const char *script, struct pale_err *err)
{
	_cleanup_close_ int fd = open(script, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct buf text = BUF_INIT(MAX_CODE);
	struct stat st;
	char magic[4];
	int r;

	/* A program is no code to read; its path is in the log. */
	if (fd >= 0 && pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	    memcmp(magic, "\177ELF", 4) == 0)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	r = buf_read_fd(&text, fd);
	if (r < 0)
		buf_done(&text);
	/* The log holds the code whole, or it does not run. */
	if (r == -ENOSPC)
		return err_set(err, PALE_E_AUDIT, STAGE, 0,
			       "%s is larger than the %u MiB of code that the log holds",
			       QUOTED(script), MAX_CODE >> 20);
	if (r < 0)
		return r == -ENOMEM ? err_nomem(err, STAGE) : 0;
	p->command.code = text.data;
	p->command.code_len = text.len;
	return 0;
}

/* Where the host has the program or script `path` that an entry shows elsewhere inside. */
static bool find_moved(const struct policy *policy, const char *path, char ret[static PATH_MAX])
{
	for (size_t i = policy->nfiles; *path == '/' && i-- > 0;) {
		const struct policy_file *f = &policy->files[i];
		size_t n = strlen(f->path);
		int r;

		if ((f->access != ACCESS_READ && f->access != ACCESS_OVERLAY) ||
		    strncmp(path, f->path, n) != 0 || (path[n] && path[n] != '/'))
			continue;
		r = snprintf(ret, PATH_MAX, "%s%s", f->from, path + n);
		return strcmp(f->path, f->from) != 0 && r > 0 && r < PATH_MAX &&
		       access(ret, F_OK) == 0;
	}
	return false;
}

/* What the caller typed, as an interpreter's argv where it is code or a script. Returns the number
 * of req->argv used up. */
static int choose(const struct plan_request *req, const char *first, struct interpreter *in,
		  const char **ret_script, size_t *ret_used, struct pale_err *err)
{
	*ret_script = NULL;
	*ret_used = 0;
	if (req->session) {
		*in = (struct interpreter){.argv = {first}, .argc = 1};
		return 0;
	}
	if (req->code)
		return interpreter_for_code(req->lang ? req->lang : "python", req->code, in, err);
	if (!first)
		return err_set(err, PALE_E_USAGE, STAGE, 0,
			       "nothing to run: name a command, a script or -c CODE");
	*ret_used = 1;
	if (strcmp(first, "-") == 0)
		return interpreter_for_stdin(req->lang ? req->lang : "python", in, err);
	if (interpreter_is_script(first)) {
		*ret_script = first;
		return interpreter_for_script(first, in, err);
	}
	*in = (struct interpreter){.argv = {first}, .argc = 1};
	return 0;
}

static int find_toolchain(const struct plan_request *req, const char *command,
			  const char *first_arg, const char *script, struct toolchain *ret,
			  struct pale_err *err)
{
	_cleanup_free_ const char **visible = calloc(req->policy->nfiles + 1, sizeof(*visible));
	struct toolchain_request find = {
		.command = command,
		.is_file = script && strcmp(script, command) == 0,
		.first_arg = first_arg,
		.path_env = env_get(req->env, "PATH"),
		.home = env_get(req->env, "HOME"),
		.cwd = req->cwd,
		.script = script && strcmp(script, command) != 0 ? script : NULL,
		.env = req->env,
	};

	if (!visible)
		return err_nomem(err, STAGE);
	for (size_t i = 0; i < req->policy->nfiles; i++)
		if (shown(req->policy, req->policy->files[i].path))
			visible[find.nvisible++] = req->policy->files[i].path;
	find.visible = visible;
	return toolchain_find(&find, ret, err);
}

int command_make(struct plan *p, const struct plan_request *req, struct toolchain *ret,
		 struct pale_err *err)
{
	struct interpreter in = {0};
	const char *script = NULL, *first_arg;
	struct list argv = {0};
	const char *first = req->session ? kernel_program(p->kernel)
			    : req->argv	 ? req->argv[0]
					 : NULL;
	char host[PATH_MAX];
	bool moved = first && !req->code && find_moved(req->policy, first, host);
	size_t used;
	int r = choose(req, moved ? host : first, &in, &script, &used, err);

	if (r < 0)
		return r;
	first_arg = in.argc > 1 ? in.argv[1] : req->argv && req->argv[0] ? req->argv[used] : NULL;
	if (req->session)
		first_arg = NULL;
	/* What the policy shows under another name is there without our help; only what runs it
	 * may have to be found. */
	if (!moved || in.argv[0] != host) {
		r = find_toolchain(req, in.argv[0], first_arg, moved ? NULL : script, ret, err);
		if (r < 0)
			return r;
	}
	p->command.program = strdup(ret->program ? ret->program : first);
	if (!p->command.program)
		return err_nomem(err, STAGE);
	for (size_t i = 0; r == 0 && i < in.argc; i++) {
		const char *arg = in.argv[i];

		if (script && strcmp(arg, script) == 0 && i > 0 && ret->script)
			arg = ret->script;
		if (moved && arg == host)
			arg = first;
		/* A script that is run by its own #! line goes by its name inside. */
		else if (i == 0 && script && strcmp(arg, script) == 0)
			arg = ret->program;
		r = list_add(&argv, arg, err);
	}
	if (r == 0 && req->session) {
		for (size_t i = 0; i < argv.n; i++)
			free(argv.items[i]);
		free(argv.items);
		argv.items = kernel_argv(p->kernel, p->command.program, req->policy, err);
		r = argv.items ? 0 : -(int)err->code;
	}
	used += in.argc > 1 ? 0 : ret->drop_args;
	for (size_t i = used; r == 0 && !req->session && req->argv && req->argv[0] && req->argv[i];
	     i++)
		r = list_add(&argv, req->argv[i], err);
	p->command.argv = argv.items;
	p->command.tty = req->tty;
	if (r == 0)
		r = make_env(p, req, ret, err);
	if (r == 0)
		r = make_cwd(p, req, err);
	if (r == 0 && req->code) {
		p->command.code = strdup(req->code);
		p->command.code_len = strlen(req->code);
		r = p->command.code ? 0 : err_nomem(err, STAGE);
	} else if (r == 0 && script) {
		r = keep_script(p, script, err);
	}
	return r;
}
