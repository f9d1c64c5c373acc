/* Names of sessions: see session_name.h. In the supervisor, and in the library of those who look
 * for a session. The directory is the owner's own; what a killed supervisor left there gives way.
 */
#include "supervise/session_name.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"

#define STAGE "supervise"
#define NAMES "names"
#define TRIES 8

bool session_name_valid(const char *name)
{
	size_t len = strlen(name);

	return len && len <= 64 && len != AUDIT_ID_LEN && name[0] != '.' && name[0] != '-' &&
	       name[0] != '_' && strcmp(name, "last") != 0 &&
	       name[strspn(name,
			   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")] ==
		       '\0';
}

static int open_names(const struct audit_state *s, bool make)
{
	int fd;

	if (make && mkdirat(s->dir, NAMES, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(s->dir, NAMES, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int read_name(int names, const char *name, char ret[static AUDIT_ID_SIZE])
{
	ssize_t n = readlinkat(names, name, ret, AUDIT_ID_SIZE);

	if (n != AUDIT_ID_LEN)
		return n < 0 ? -errno : -ENOENT;
	ret[n] = '\0';
	return 0;
}

static bool lives(const struct audit_state *s, const char *id)
{
	_cleanup_close_ int dir = -1, log = -1;

	return audit_state_run(s, id, O_RDONLY, &dir, &log, NULL) == 0 && audit_locked(log);
}

int session_name_take(const char *name, const char *id, struct pale_err *err)
{
	_cleanup_state_ struct audit_state s = AUDIT_STATE_NONE;
	_cleanup_close_ int names = -1;
	char other[AUDIT_ID_SIZE];
	int r = audit_state_open(&s, err);

	if (r < 0)
		return r;
	names = open_names(&s, true);
	if (names < 0)
		return err_set(err, PALE_E_HOST, STAGE, -names, "cannot open %s/" NAMES,
			       QUOTED(s.path));
	for (int i = 0; i < TRIES; i++) {
		if (symlinkat(id, names, name) == 0)
			return 0;
		if (errno != EEXIST)
			return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot take the name %s",
				       QUOTED(name));
		r = read_name(names, name, other);
		if (r == 0 && lives(&s, other))
			return err_set(
				err, PALE_E_CONFLICT, STAGE, 0,
				"a session %s runs already (%s): `pale session rm %s` ends it",
				name, other, name);
		if (r < 0 && r != -ENOENT)
			break;
		unlinkat(names, name, 0);
	}
	return err_set(err, PALE_E_CONFLICT, STAGE, 0, "the name %s is being taken by others",
		       QUOTED(name));
}

void session_name_drop(const char *name, const char *id)
{
	_cleanup_state_ struct audit_state s = AUDIT_STATE_NONE;
	_cleanup_close_ int names = -1;
	char now[AUDIT_ID_SIZE];
	struct pale_err ignored;

	if (audit_state_open(&s, &ignored) < 0)
		return;
	names = open_names(&s, false);
	if (names >= 0 && read_name(names, name, now) == 0 && strcmp(now, id) == 0)
		unlinkat(names, name, 0);
}

int session_name_find(const struct audit_state *s, const char *name, char ret[static AUDIT_ID_SIZE],
		      struct pale_err *err)
{
	_cleanup_close_ int names = open_names(s, false);
	int r = names < 0 ? names : read_name(names, name, ret);

	return r < 0 ? err_set(err, PALE_E_NOTFOUND, STAGE, 0, "there is no session %s",
			       QUOTED(name))
		     : 0;
}
