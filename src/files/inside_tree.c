/* Trees that are hostile in names, shape and modes, and change meanwhile: see inside_tree.h. In the
 * workers in a running box. */
#include "files/inside_tree.h"
#include "files/walk.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/fd.h"

#define TRIES	  64	  /* when the tree is renamed while a path is walked */
#define REMOVE_US 2000000 /* then the caller is told that there is more */
#define DEPTH_MAX 1000
#define GETDENTS  32768

int tree_open(int dir, const char *path, int flags, mode_t mode, uint64_t resolve)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
		.mode = flags & O_CREAT ? mode : 0,
		.resolve = resolve,
	};
	long fd = -1;

	for (int i = 0; i < TRIES; i++) {
		fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return fd < 0 ? -errno : (int)fd;
}

/* From the top down, each level by its own descriptor: no link that takes a directory's place while
 * we are in it leads anywhere, and no other mount is entered. */
static struct level {
	int fd;
	char name[NAME_MAX + 1];
} levels[DEPTH_MAX];

static int enter(int dir, const char *name, size_t depth, bool force)
{
	int fd;

	if (depth == DEPTH_MAX || strlen(name) > NAME_MAX)
		return -ENAMETOOLONG;
	fd = tree_open(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, TREE_BENEATH);
	/* A link in its place would have it changed what the box can change itself. */
	if (fd == -EACCES && force && fchmodat(dir, name, 0700, 0) == 0)
		fd = tree_open(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, TREE_BENEATH);
	if (fd == -EXDEV)
		return -EBUSY;
	if (fd < 0)
		return fd;
	if (force)
		(void)!fchmod(fd, 0700);
	levels[depth].fd = fd;
	memcpy(levels[depth].name, name, strlen(name) + 1);
	return 0;
}

/* What is in it: 0 it is empty, 1 a directory was entered, or a negative errno. */
static int empty_level(size_t depth, bool force, uint32_t *count)
{
	_Alignas(struct dirent_raw) static char raw[GETDENTS];
	int fd = levels[depth].fd;

	for (;;) {
		bool any = false;
		long n;

		/* What was removed is not listed again, and what comes meanwhile is. */
		if (lseek(fd, 0, SEEK_SET) < 0)
			return -errno;
		n = syscall(SYS_getdents64, fd, raw, sizeof(raw));
		if (n < 0)
			return -errno;
		for (long at = 0; at < n;) {
			const struct dirent_raw *d = (const struct dirent_raw *)(raw + at);
			int r;

			at += d->reclen;
			if (strcmp(d->name, ".") == 0 || strcmp(d->name, "..") == 0)
				continue;
			any = true;
			if (unlinkat(fd, d->name, 0) == 0) {
				++*count;
				continue;
			}
			if (errno == ENOENT)
				continue;
			if (errno != EISDIR)
				return -errno;
			r = enter(fd, d->name, depth + 1, force);
			if (r != -ENOENT && r != -ENOTDIR && r != -ELOOP)
				return r < 0 ? r : 1;
		}
		if (!any)
			return 0;
	}
}

int tree_remove(int parent, const char *name, bool force, uint32_t *count, bool *ret_more)
{
	uint64_t until = clock_mono_us() + REMOVE_US;
	size_t depth = 0;
	int r = enter(parent, name, 0, force);

	if (r < 0)
		return r;
	for (;;) {
		r = empty_level(depth, force, count);
		if (r == 1) {
			depth++;
		} else if (r == 0) {
			int above = depth ? levels[depth - 1].fd : parent;

			if (unlinkat(above, levels[depth].name, AT_REMOVEDIR) == 0) {
				++*count;
			} else if (errno != ENOTEMPTY && errno != ENOENT && errno != ENOTDIR) {
				/* Not one that was filled, or replaced, again. */
				r = -errno;
				break;
			}
			close_fd(&levels[depth].fd);
			if (depth-- == 0)
				return 0;
		} else {
			break;
		}
		if (clock_mono_us() > until) {
			*ret_more = true;
			r = 0;
			break;
		}
	}
	for (size_t i = 0; i <= depth; i++)
		close_fd(&levels[i].fd);
	return r;
}
