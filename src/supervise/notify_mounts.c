/* Does a path that the box asked for exist on the host? The box chooses the path, and the
 * supervisor must not wait for it: not for a server that a network file system has lost, not for an
 * automounter, not for a FUSE daemon. So it is looked up only in mounts of local file systems,
 * never out of the mount that the path's beginning names. (What a symbolic link leads to in another
 * mount is then not seen; the event is only missed.)
 *
 * In the supervisor. The list of mounts is the kernel's, read once; the path is hostile. */
#include "supervise/notify_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"

#define MAX_MOUNTS 4096

struct mount {
	char *path; /* without a slash at the end; "" for the root */
	size_t len;
	bool local;
};

struct notify_mounts {
	struct mount *list;
	size_t n;
};

static bool is_local(const char *type)
{
	static const char *const types[] = {"ext2",	"ext3",	   "ext4", "xfs",   "btrfs",
					    "bcachefs", "f2fs",	   "zfs",  "tmpfs", "ramfs",
					    "overlay",	"erofs",   "vfat", "jfs",   "squashfs",
					    "exfat",	"reiserfs"};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (strcmp(types[i], type) == 0)
			return true;
	return false;
}

/* \040 and its like, in place. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++, to++) {
		if (s[0] == '\\' && s[1] && s[2] && s[3]) {
			*to = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 3;
		} else {
			*to = *s;
		}
	}
	*to = 0;
}

/* "36 35 98:0 /root /mount/point rw,noatime shared:1 - ext4 /dev/root rw" */
static int add_line(struct notify_mounts *m, char *line)
{
	char *rest = line, *field = NULL, *dash = strstr(line, " - "), *type, *path;
	struct mount *grown;

	if (!dash || m->n == MAX_MOUNTS)
		return 0;
	*dash = 0;
	type = dash + 3;
	type[strcspn(type, " \n")] = 0;
	for (int i = 0; i < 5; i++)
		field = strsep(&rest, " ");
	if (!field || !(path = strdup(field)))
		return field ? -ENOMEM : 0;
	unescape(path);
	if (strcmp(path, "/") == 0)
		path[0] = 0;
	grown = reallocarray(m->list, m->n + 1, sizeof(*grown));
	if (!grown) {
		free(path);
		return -ENOMEM;
	}
	m->list = grown;
	m->list[m->n++] =
		(struct mount){.path = path, .len = strlen(path), .local = is_local(type)};
	return 0;
}

int notify_mounts_new(struct notify_mounts **ret)
{
	struct notify_mounts *m = calloc(1, sizeof(*m));
	_cleanup_file_ FILE *f = fopen("/proc/self/mountinfo", "re");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	int r = m && f ? 0 : m ? -errno : -ENOMEM;

	while (r == 0 && getline(&line, &size, f) > 0)
		r = add_line(m, line);
	if (r < 0) {
		notify_mounts_free(m);
		return r;
	}
	*ret = m;
	return 0;
}

void notify_mounts_free(struct notify_mounts *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n; i++)
		free(m->list[i].path);
	free(m->list);
	free(m);
}

bool notify_mounts_have(const struct notify_mounts *m, char *path)
{
	const struct mount *best = NULL;
	_cleanup_close_ int mount = -1, fd = -1;
	const char *inside;
	char *to = path;

	/* Beginnings are compared as text: without // and /./ in it. */
	for (char *s = path; *s; s++) {
		if (s[0] == '/' && s[1] == '/')
			continue;
		if (s[0] == '/' && s[1] == '.' && s[2] == '/') {
			s++;
			continue;
		}
		*to++ = *s;
	}
	*to = 0;
	/* Of equal ones the last covers those before. */
	for (size_t i = 0; i < m->n; i++) {
		const struct mount *c = &m->list[i];

		if ((!best || c->len >= best->len) && strncmp(path, c->path, c->len) == 0 &&
		    (path[c->len] == '/' || !path[c->len]))
			best = c;
	}
	if (!best || !best->local)
		return false;
	mount = open(best->len ? best->path : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (mount < 0)
		return false;
	inside = path + best->len + strspn(path + best->len, "/");
	if (!*inside)
		return true;
	/* O_PATH opens nothing and starts no automount at the path's end; NO_XDEV none before it.
	 */
	fd = fd_openat2(mount, inside, O_PATH | O_NOFOLLOW, 0,
			RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV);
	return fd >= 0;
}
