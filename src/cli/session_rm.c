/* pale session rm: ends sessions, and waits until nothing of them is alive. Runs with the caller's
 * rights outside any box. */
#include "cli/session.h"

#include <poll.h>
#include <string.h>
#include <sys/pidfd.h>

#include "base/str.h"
#include "cli/audit.h"
#include "cli/blocked.h"

#define WAIT_MS 30000 /* for a supervisor to end */

enum { OPT_ALL = 1, OPT_FORCE };
static const struct cli_option options[] = {
	{OPT_ALL, 'a', "all", NULL, "every session"},
	{OPT_FORCE, 'f', "force", NULL, "no error where there is no such session"},
	{0},
};

/* Ends it: a descriptor of its supervisor, which tells when it has ended; or a negative code. */
static int begin(const char *ref, struct pale_err *err)
{
	_cleanup_session_ struct pale_session *s = NULL;
	_cleanup_json_ json_t *info = NULL;
	_cleanup_close_ int fd = -1;
	int r = pale_session_open(ref, &s, err);

	if (r == 0)
		r = cli_session_call(s, "info", NULL, 0, &info, err);
	if (r < 0)
		return r;
	fd = pidfd_open((pid_t)cli_int_at(info, "supervisor_pid"), 0);
	if (fd < 0)
		return err_set(err, errno == ESRCH ? PALE_E_NOTFOUND : PALE_E_SYSTEM, "cli", errno,
			       "cannot watch the supervisor of session %s", QUOTED(ref));
	/* It lives after the descriptor was made: the descriptor is its own. */
	r = cli_session_call(s, "box.destroy", NULL, 0, NULL, err);
	/* Already about to end. */
	if (r < 0 && err->code != PALE_E_CONFLICT && err->code != PALE_E_NOTFOUND)
		return r;
	return take_fd(&fd);
}

static int finish(int fd, const char *ref, struct pale_err *err)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int r;

	do
		r = poll(&p, 1, WAIT_MS);
	while (r < 0 && errno == EINTR);
	if (r > 0)
		return 0;
	return err_set(err, PALE_E_SYSTEM, "cli", 0, "session %s has not ended within %d s",
		       QUOTED(ref), WAIT_MS / 1000);
}

/* 1: not all of them were there; 125: one could not be ended. */
static int remove_all(char *const *refs, size_t n, bool force)
{
	_cleanup_free_ int *fds = calloc(n ? n : 1, sizeof(*fds));
	struct pale_err err = {0};
	int status = 0;

	if (!fds)
		return CLI_EXIT_PALE;
	for (size_t i = 0; i < n; i++) {
		fds[i] = begin(refs[i], &err);
		if (fds[i] >= 0 || (force && err.code == PALE_E_NOTFOUND))
			continue;
		cli_fail(&err);
		if (status != CLI_EXIT_PALE)
			status = err.code == PALE_E_NOTFOUND ? 1 : CLI_EXIT_PALE;
	}
	for (size_t i = 0; i < n; i++) {
		if (fds[i] < 0)
			continue;
		if (finish(fds[i], refs[i], &err) < 0)
			status = cli_fail(&err);
		close_fd(&fds[i]);
	}
	return status;
}

struct found {
	char **ids;
	size_t n;
	bool failed;
};

static void each(void *arg, const char *text)
{
	struct found *f = arg;
	_cleanup_json_ json_t *info = json_loads(text, JSON_ALLOW_NUL, NULL);
	char **more = reallocarray(f->ids, f->n + 1, sizeof(*more));

	if (more)
		f->ids = more;
	if (more && info)
		more[f->n] = strdup(cli_string_at(info, "id"));
	if (!more || !info || !more[f->n])
		f->failed = true;
	else
		f->n++;
}

static int remove_found(void)
{
	struct found f = {0};
	struct pale_err err = {0};
	int listed = pale_session_list(each, &f, &err), status;

	if (listed < 0)
		cli_fail(&err);
	status = remove_all(f.ids, f.n, true);
	if (listed < 0 || f.failed)
		status = CLI_EXIT_PALE;
	for (size_t i = 0; i < f.n; i++)
		free(f.ids[i]);
	free(f.ids);
	return status;
}

static int run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_session_rm_command, argc, argv);
	bool all = false, force = false;
	const char *value;
	int id;

	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_ALL: all = true; break;
		case OPT_FORCE: force = true; break;
		}
	if (id < 0)
		return args.status;
	if (all && args.argc)
		return cli_usage("session rm", "--all and a session exclude each other");
	if (!all && !args.argc && !force)
		return cli_usage("session rm", "which session? --all for every one");
	return all ? remove_found() : remove_all(args.argv, (size_t)args.argc, force);
}

const struct cli_command cli_session_rm_command = {
	.name = "session rm",
	.summary = "end sessions",
	.usage = "[OPTION...] SESSION...|--all",
	.help = "Ends sessions with everything in them, also what runs there, and waits until that "
		"is done.\n"
		"Their logs stay: `pale audit show` tells what they did. Pools and what they hold "
		"ready go on,\n"
		"also with --all: `pale pool stop` ends them.\n"
		"\n"
		"  pale session rm work\n"
		"  pale session rm --all\n"
		"\n" SESSION_HELP "\n"
		"\n"
		"Exit status: 0; 1 if there is no such session; 2 for wrong usage; 125 if Pale "
		"failed.\n",
	.options = options,
	.run = run,
};
