/* The directory: see scratch.h. In the caller's process, with a single thread: it changes the
 * environment. */
#include "scratch.h"

#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"

#define STAGE "verify"

static bool shown(const struct policy *p, const char *dir)
{
	for (size_t i = 0; i < p->nfiles; i++) {
		char real[PATH_MAX];
		size_t len;

		if (!p->files[i].from || !realpath(p->files[i].from, real))
			continue;
		len = strlen(real);
		if (strcmp(real, "/") == 0 ||
		    (strncmp(dir, real, len) == 0 && (dir[len] == '/' || !dir[len])))
			return true;
	}
	return false;
}

int scratch_make(struct scratch *s, const struct policy *policy, struct pale_err *err)
{
	const char *const dirs[] = {getenv("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm"};
	const char *old = getenv("PALE_STATE_DIR");
	char state[PATH_MAX];

	*s = (struct scratch){0};
	for (size_t i = 0; i < ARRAY_SIZE(dirs) && !*s->path; i++) {
		char real[PATH_MAX];

		if (!dirs[i] || !realpath(dirs[i], real) || shown(policy, real) ||
		    snprintf(s->path, sizeof(s->path), "%s/pale-verify-XXXXXX", real) >=
			    (int)sizeof(s->path) - 64 ||
		    !mkdtemp(s->path))
			*s->path = '\0';
	}
	if (!*s->path)
		return err_set(err, PALE_E_HOST, STAGE, 0,
			       "no directory for temporary files that the policy does not show: "
			       "set TMPDIR to one");
	/* Nothing but the box keeps the attacks from what lies there. */
	snprintf(state, sizeof(state), "%s/state", s->path);
	if (chmod(s->path, 0755) < 0 || mkdir(state, 0700) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make %s", QUOTED(state));
	s->state = old ? strdup(old) : NULL;
	if ((old && !s->state) || setenv("PALE_STATE_DIR", state, 1) < 0)
		return err_nomem(err, STAGE);
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	(void)remove(path); /* the rest goes nonetheless */
	return 0;
}

void scratch_done(struct scratch *s)
{
	if (!*s->path)
		return;
	if (s->state)
		setenv("PALE_STATE_DIR", s->state, 1);
	else
		unsetenv("PALE_STATE_DIR");
	free(s->state);
	nftw(s->path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	*s->path = '\0';
}
