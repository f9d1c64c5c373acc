/* Control groups: freezing all that is in one (see cgroup.h).
 *
 * Runs in the supervisor, outside the box, with the caller's privileges. Nothing here is hostile: a
 * process that is frozen was not asked, and sees nothing of it but that time has passed.
 *
 * Version 2 (Linux 5.2): what is frozen can be killed, and stops its box like everything else when
 * the supervisor dies. Version 1: every signal waits, SIGKILL too, until it is let go on, so
 * whoever kills a frozen box has to let it go on afterwards. A scope of systemd's is frozen by the
 * same file where it is ours to write (it is the user's own below a user manager). */
#include "confine/cgroup_impl.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define STAGE	 "confine"
#define V1_STATE "freezer.state"
#define V1_THAW	 "THAWED"

static const char *v1_dir(const struct cgroup *g)
{
	return g->kind == CGROUP_V1 && g->of[CGROUP_FREEZER] >= 0
		       ? g->group[g->of[CGROUP_FREEZER]].path
		       : NULL;
}

bool cgroup_can_freeze(const struct cgroup *g)
{
	char path[CGROUP_PATH + 16];

	if (g->kind == CGROUP_V1)
		return v1_dir(g);
	snprintf(path, sizeof(path), "%s/cgroup.freeze", g->group[0].path);
	return g->limits.freezer && g->ngroups && access(path, W_OK) == 0;
}

int cgroup_freeze(struct cgroup *g, bool freeze, struct pale_err *err)
{
	const char *v1 = v1_dir(g);
	int r = v1 ? cgroup_file_write(v1, V1_STATE, freeze ? "FROZEN" : V1_THAW)
		   : cgroup_file_write(g->group[0].path, "cgroup.freeze", freeze ? "1" : "0");

	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, -r, "%s the processes of \"%s\"",
			       freeze ? "freezing" : "thawing", v1 ? v1 : g->group[0].path);
	g->frozen = freeze;
	return 0;
}

bool cgroup_stands(struct cgroup *g)
{
	const char *v1 = v1_dir(g);
	char buf[256];

	if (v1)
		return cgroup_file_read(v1, V1_STATE, buf, sizeof(buf)) > 0 &&
		       cgroup_word(buf, "FROZEN");
	return cgroup_file_read(g->group[0].path, "cgroup.events", buf, sizeof(buf)) > 0 &&
	       cgroup_key(buf, "frozen") == 1;
}

int cgroup_thaw_fd(const struct cgroup *g, const char **ret_text)
{
	const char *v1 = v1_dir(g);
	char path[CGROUP_PATH + 16];

	*ret_text = V1_THAW;
	if (!v1)
		return -1;
	snprintf(path, sizeof(path), "%s/" V1_STATE, v1);
	return open(path, O_WRONLY | O_CLOEXEC);
}

void cgroup_thaw_dir(const char *dir)
{
	if (cgroup_has_file(dir, V1_STATE))
		cgroup_file_write(dir, V1_STATE, V1_THAW);
}

void cgroup_thaw_killed(struct cgroup *g)
{
	if (g->frozen && v1_dir(g))
		cgroup_thaw_dir(v1_dir(g));
	g->frozen = false;
}
