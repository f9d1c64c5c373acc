/* Mounts by descriptors: see mount.h. Runs in the set-up child of a box, and in a root supervisor.
 */
#include "mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#define AT_RECURSIVE_FLAG 0x8000

int mount_clone(int fd, bool recursive)
{
	long tree = syscall(SYS_open_tree, fd, "",
			    AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC |
				    (recursive ? AT_RECURSIVE_FLAG : 0));

	return tree < 0 ? -errno : (int)tree;
}

int mount_restrict(int tree, uint64_t attributes, int userns_fd, bool recursive)
{
	struct mount_attr attr = {.attr_set = attributes};

	if (userns_fd >= 0) {
		attr.attr_set |= MOUNT_ATTR_IDMAP;
		attr.userns_fd = (__u64)userns_fd;
	}
	return syscall(SYS_mount_setattr, tree, "",
		       AT_EMPTY_PATH | (recursive ? AT_RECURSIVE_FLAG : 0), &attr, sizeof(attr)) < 0
		       ? -errno
		       : 0;
}

int mount_new(const char *type, const char *const *options, uint64_t attributes)
{
	_cleanup_close_ int fs = (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);
	long tree;

	if (fs < 0)
		return -errno;
	for (; options[0]; options += 2)
		if (syscall(SYS_fsconfig, fs, options[1] ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG,
			    options[0], options[1], 0) < 0)
			return -errno;
	if (syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	tree = syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, attributes);
	return tree < 0 ? -errno : (int)tree;
}

int mount_overlay(const char *lower, const char *upper, const char *work)
{
	const char *options[] = {
		"lowerdir", lower,     "userxattr", NULL, upper ? "upperdir" : NULL,
		upper,	    "workdir", work,	    NULL};

	return mount_new("overlay", options,
			 MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (upper ? 0 : MOUNT_ATTR_RDONLY));
}

int mount_move(int tree, int dirfd, const char *path)
{
	unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | (*path ? 0 : MOVE_MOUNT_T_EMPTY_PATH);

	return syscall(SYS_move_mount, tree, "", dirfd, path, flags) < 0 ? -errno : 0;
}
