/* Which control groups this process can make: looks, and creates nothing (see cgroup.h).
 *
 * Runs in the supervisor before anything is made, with the caller's privileges. The files read are
 * the kernel's. */
#include "confine/cgroup_impl.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"

#define PROC_MAX (4u << 20) /* of mountinfo */

static const char *const v1_names[] = {
	[CGROUP_MEMORY] = "memory",   [CGROUP_PIDS] = "pids",	    [CGROUP_CPU] = "cpu",
	[CGROUP_CPUACCT] = "cpuacct", [CGROUP_FREEZER] = "freezer",
};

/* The next line of *text, cut off in place; NULL at the end. */
static char *next_line(char **text)
{
	char *line = *text;

	if (!line || !*line)
		return NULL;
	char *end = strchr(line, '\n');

	if (end)
		*end = '\0';
	*text = end ? end + 1 : NULL;
	return line;
}

static int read_file(const char *path, struct buf *b)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char first[4096]; /* mostly all of it, without the pages of a large buffer */

	if (fd < 0)
		return -errno;
	ssize_t n = read(fd, first, sizeof(first));

	if (n < 0)
		return -errno;
	int r = buf_add(b, first, (size_t)n);

	if (r < 0)
		return r;
	n = read(fd, first, sizeof(first));
	if (n < 0)
		return -errno;
	r = n ? buf_add(b, first, (size_t)n) : 0;
	return r < 0 || n == 0 ? r : buf_read_fd(b, fd);
}

/* mountinfo writes blanks, tabs, newlines and backslashes of paths as \ooo. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
		    s[3] >= '0' && s[3] <= '7') {
			*to++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

/* The own group's directory: the mount shows the hierarchy from `root` on, and own is a path in the
 * same terms. A mount that does not show our own group (a container that was given another's) is
 * no use. */
static void place_set(struct cgroup_place *place, const char *own, const char *root,
		      const char *mnt)
{
	size_t len = strcmp(root, "/") == 0 ? 0 : strlen(root);

	if (place->dir[0] || strncmp(own, root, len) != 0 || (own[len] && own[len] != '/') ||
	    strstr(own, "/.."))
		return;
	const char *rest = strcmp(own + len, "/") == 0 ? "" : own + len;
	int n = snprintf(place->dir, sizeof(place->dir), "%s%s", mnt, rest);

	if (n < 0 || (size_t)n >= sizeof(place->dir))
		place->dir[0] = '\0';
	place->mount_len = strlen(mnt);
}

static bool usual_place(struct cgroup_place *place, const char *own, const char *mnt, long magic)
{
	struct statfs fs;

	if (!own || statfs(mnt, &fs) < 0 || (long)fs.f_type != magic)
		return false;
	place_set(place, own, "/", mnt);
	/* A mount that begins below the hierarchy's root does not show our path where it says. */
	return place->dir[0] && access(place->dir, F_OK) == 0;
}

/* The places where every distribution mounts them: three quick calls a hierarchy instead of the
 * kernel writing down all mounts. False: something is elsewhere, and ret is as it was. */
static bool usual_places(const char *v2_own, const char *const v1_own[CGROUP_V1_COUNT],
			 struct cgroup_places *ret)
{
	struct cgroup_places usual = *ret;
	bool any_v1 = false;

	for (int c = 0; c < CGROUP_V1_COUNT; c++) {
		char mnt[64];

		if (!v1_own[c])
			continue;
		any_v1 = true;
		snprintf(mnt, sizeof(mnt), "/sys/fs/cgroup/%s", v1_names[c]);
		/* Without a freezer a box is stopped by signals. */
		if (!usual_place(&usual.v1[c], v1_own[c], mnt, CGROUP_SUPER_MAGIC) &&
		    c != CGROUP_FREEZER)
			return false;
	}
	if (v2_own &&
	    !usual_place(&usual.v2, v2_own, any_v1 ? "/sys/fs/cgroup/unified" : "/sys/fs/cgroup",
			 CGROUP2_SUPER_MAGIC))
		return false;
	*ret = usual;
	return true;
}

int cgroup_places_read(const struct cgroup_source *src, struct cgroup_places *ret)
{
	_cleanup_buf_ struct buf own = BUF_INIT(1u << 16), mounts = BUF_INIT(PROC_MAX);
	const char *v2_own = NULL, *v1_own[CGROUP_V1_COUNT] = {NULL};
	char *rest, *line;
	int r;

	memset(ret, 0, sizeof(*ret));
	r = read_file(src->self_cgroup, &own);
	if (r < 0)
		return r;

	rest = own.data;
	while ((line = next_line(&rest))) { /* 4:cpu,cpuacct:/path */
		char *names = strchr(line, ':');
		char *path = names ? strchr(names + 1, ':') : NULL;

		if (!path)
			continue;
		*path++ = '\0';
		names++;
		if (!*names) {
			v2_own = path;
			ret->v2.listed = true;
		}
		for (int c = 0; c < CGROUP_V1_COUNT; c++) {
			if (cgroup_word(names, v1_names[c])) {
				v1_own[c] = path;
				ret->v1[c].listed = true;
			}
		}
	}

	if (strcmp(src->self_mountinfo, "/proc/self/mountinfo") == 0 &&
	    usual_places(v2_own, v1_own, ret))
		return 0;
	r = read_file(src->self_mountinfo, &mounts);
	if (r < 0)
		return r;
	rest = mounts.data;
	while ((line = next_line(
			&rest))) { /* id parent dev ROOT MOUNTPOINT options - TYPE src OPTIONS */
		char *tail = strstr(line, " - cgroup");

		if (!tail)
			continue;
		*tail = '\0';
		tail += strlen(" - ");
		char *save = NULL, *root, *mnt;

		for (int i = 0; i < 3; i++)
			strtok_r(i ? NULL : line, " ", &save);
		root = strtok_r(NULL, " ", &save);
		mnt = strtok_r(NULL, " ", &save);
		if (!root || !mnt)
			continue;
		unescape(root);
		unescape(mnt);
		if (str_starts(tail, "cgroup2 ")) {
			if (v2_own)
				place_set(&ret->v2, v2_own, root, mnt);
			continue;
		}
		for (int c = 0; c < CGROUP_V1_COUNT; c++) {
			if (v1_own[c] && cgroup_word(tail, v1_names[c]))
				place_set(&ret->v1[c], v1_own[c], root, mnt);
		}
	}
	return 0;
}

/* ---- probe ---- */

void cgroup_probe_at(const struct cgroup_source *src, struct cgroup_host *ret)
{
	_cleanup_free_ struct cgroup_places *places = malloc(sizeof(*places));

	memset(ret, 0, sizeof(*ret));
	if (!places) {
		cgroup_why(ret, "out of memory");
		cgroup_note(ret, -ENOMEM);
		return;
	}
	int r = cgroup_places_read(src, places);

	if (r < 0) {
		cgroup_why(ret, "%s cannot be read (%s)", src->self_cgroup, strerror(-r));
		cgroup_note(ret, r);
		return;
	}
	/* A host may mount both; the controllers are where the processes are limited. */
	char controllers[256] = "";

	if (places->v2.dir[0] && !places->v1[CGROUP_MEMORY].listed)
		cgroup_note(ret, (int)cgroup_file_read(places->v2.dir, "cgroup.controllers",
						       controllers, sizeof(controllers)));
	bool any_v1 = false;

	for (int c = 0; c < CGROUP_V1_COUNT; c++)
		any_v1 |= places->v1[c].listed;

	if (places->v2.dir[0] && (!any_v1 || cgroup_word(controllers, "memory"))) {
		cgroup_v2_probe(src, places, ret);
	} else if (any_v1) {
		cgroup_v1_probe(src, places, ret);
	} else {
		cgroup_why(
			ret,
			"no cgroup file system is mounted: mount -t cgroup2 cgroup2 /sys/fs/cgroup "
			"(in a container: give it its own cgroup namespace and a writable "
			"/sys/fs/cgroup)");
	}
}

void cgroup_probe(struct cgroup_host *ret)
{
	const struct cgroup_source src = {
		.self_cgroup = "/proc/self/cgroup",
		.self_mountinfo = "/proc/self/mountinfo",
		.systemd = "/run/systemd/system",
		.swaps = "/proc/swaps",
		.runtime_dir = getenv("XDG_RUNTIME_DIR"),
		.uid = geteuid(),
	};

	cgroup_probe_at(&src, ret);
}

/* ---- making ---- */
