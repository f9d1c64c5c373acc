/* The directory: see scratch.h. In the caller's process, with a single thread: it changes the
 * environment. */
#include "scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"

#define STAGE	  "verify"
#define DEEP	  64 /* directories that are removed in each other */
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

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
	int r;

	*s = (struct scratch){.dir = -1, .state = old ? strdup(old) : NULL};
	if (old && !s->state)
		return err_nomem(err, STAGE);
	for (size_t i = 0; i < ARRAY_SIZE(dirs) && !*s->path; i++) {
		char real[PATH_MAX];

		if (!dirs[i] || !realpath(dirs[i], real) || shown(policy, real) ||
		    snprintf(s->path, sizeof(s->path), "%s/pale-verify-XXXXXX", real) >=
			    (int)sizeof(s->path) - 64 ||
		    !mkdtemp(s->path))
			*s->path = '\0';
		else
			s->dir = open(s->path, DIR_FLAGS);
	}
	if (!*s->path)
		return err_set(err, PALE_E_HOST, STAGE, 0,
			       "no directory for temporary files that the policy does not show: "
			       "set TMPDIR to one");
	/* Nothing but the box keeps the attacks from what lies there; only the caller changes it.
	 */
	snprintf(state, sizeof(state), "%s/state", s->path);
	if (s->dir < 0 || fchmod(s->dir, 0755) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot open %s", QUOTED(s->path));
	r = scratch_dir(s, "state", 0700, err);
	if (r < 0)
		return r;
	if (setenv("PALE_STATE_DIR", state, 1) < 0)
		return err_nomem(err, STAGE);
	return 0;
}

int scratch_dir(const struct scratch *s, const char *name, mode_t mode, struct pale_err *err)
{
	_cleanup_close_ int fd = -1;

	if (mkdirat(s->dir, name, 0700) == 0)
		fd = openat(s->dir, name, DIR_FLAGS);
	if (fd < 0 || fchmod(fd, mode) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make %s/%s",
			       QUOTED(s->path), name);
	return 0;
}

/* Name by name below open directories: whoever may write in one of them can put a link in the place
 * of another, and it must lead nowhere. Takes the descriptor. */
static void empty(int fd, dev_t device, int deep)
{
	struct stat st;
	DIR *d = fstat(fd, &st) == 0 && st.st_dev == device && deep < DEEP ? fdopendir(fd) : NULL;
	struct dirent *e;

	if (!d) {
		close(fd);
		return;
	}
	while ((e = readdir(d))) {
		int below;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    unlinkat(fd, e->d_name, 0) == 0)
			continue;
		below = openat(fd, e->d_name, DIR_FLAGS);
		if (below >= 0)
			empty(below, device, deep + 1);
		unlinkat(fd, e->d_name, AT_REMOVEDIR); /* the rest goes nonetheless */
	}
	closedir(d);
}

void scratch_done(struct scratch *s)
{
	struct stat st;

	if (!*s->path) {
		free(s->state);
		return;
	}
	if (s->state)
		setenv("PALE_STATE_DIR", s->state, 1);
	else
		unsetenv("PALE_STATE_DIR");
	free(s->state);
	if (s->dir >= 0 && fstat(s->dir, &st) == 0)
		empty(s->dir, st.st_dev, 0);
	rmdir(s->path);
	*s->path = '\0';
}
