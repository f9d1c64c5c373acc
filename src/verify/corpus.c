/* The corpus: see corpus.h. In the caller's process; what is read is our own program's. */
#include "corpus.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "api/api.h"
#include "base/buf.h"
#include "base/str.h"

#define STAGE	 "verify"
#define LIST_MAX (4 << 20)

extern char **environ;

static int read_list(const char *program, struct buf *out, struct pale_err *err)
{
	char *argv[] = {(char *)(uintptr_t)program, (char *)(uintptr_t) "--list", NULL};
	posix_spawn_file_actions_t actions;
	int p[2], r, status = -1;
	pid_t pid;

	if (pipe2(p, O_CLOEXEC) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make a pipe");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, p[1], STDOUT_FILENO);
	r = posix_spawn(&pid, program, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(p[1]);
	if (r == 0) {
		r = -buf_read_fd(out, p[0]);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	close(p[0]);
	if (r == 0 && status == 0)
		return 0;
	return err_set(err, r == ENOENT ? PALE_E_NOTFOUND : PALE_E_SYSTEM, STAGE, r,
		       "cannot list the attacks of %s (PALE_ATTACKS_PROGRAM names another)",
		       QUOTED(program));
}

static int take(struct attempt *a, json_t *about)
{
	int flags = 0;

	*a = (struct attempt){.about = about};
	return json_unpack(about, "{s:s, s:s, s:s, s?s, s?s, s?s, s?s, s?s, s:i}", "attack",
			   &a->name, "axis", &a->axis, "promise", &a->promise, "event", &a->event,
			   "with", &a->with, "limit", &a->limit, "set", &a->set, "broken",
			   &a->broken, "flags", &flags) < 0
		       ? -1
		       : (a->flags = (unsigned)flags, 0);
}

int corpus_load(struct corpus *ret, struct pale_err *err)
{
	_cleanup_corpus_ struct corpus c = {0};
	_cleanup_buf_ struct buf text = BUF_INIT(LIST_MAX);
	char found[4200];
	const char *program = api_program("PALE_ATTACKS_PROGRAM", "pale-attacks", "../../attacks",
					  found, sizeof(found));
	json_t *about;
	size_t i;
	int r;

	if (!realpath(program, c.program))
		return err_set(err, errno == ENOENT ? PALE_E_NOTFOUND : PALE_E_SYSTEM, STAGE, errno,
			       "cannot find the attacks: %s (PALE_ATTACKS_PROGRAM names another)",
			       QUOTED(program));
	r = read_list(c.program, &text, err);
	if (r < 0)
		return r;
	c.json = json_loadb(text.data, text.len, 0, NULL);
	c.n = json_array_size(c.json);
	c.list = calloc(c.n + 1, sizeof(*c.list));
	if (!c.list)
		return err_nomem(err, STAGE);
	json_array_foreach(c.json, i, about) if (take(&c.list[i], about) < 0) return err_set(
		err, PALE_E_SYSTEM, STAGE, 0, "%s is of another version of Pale",
		QUOTED(c.program));
	if (!c.n)
		return err_set(err, PALE_E_SYSTEM, STAGE, 0, "%s has no attacks",
			       QUOTED(c.program));
	*ret = c;
	c = (struct corpus){0};
	return 0;
}

void corpus_done(struct corpus *c)
{
	json_decref(c->json);
	free(c->list);
	c->json = NULL;
	c->list = NULL;
}
