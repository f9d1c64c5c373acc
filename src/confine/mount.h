/* The mount API by descriptors (Linux 5.12): clone, restrict, attach. Nothing allocates; usable
 * after clone(). All return a descriptor, 0, or a negative errno, and need CAP_SYS_ADMIN over the
 * mount namespace's user namespace. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <linux/mount.h>

/* A detached copy of the mount at fd (O_PATH will do), with what is mounted below it or without;
 * without, -EINVAL if the kernel would thereby uncover something. */
int mount_clone(int fd, bool recursive);

/* Adds MOUNT_ATTR_* flags, to everything below too if recursive; and, if userns_fd is not -1, shows
 * the mount's ids through that user namespace's mapping (mount_setattr(2), MOUNT_ATTR_IDMAP). All
 * of it or nothing. */
int mount_restrict(int tree, uint64_t attributes, int userns_fd, bool recursive);

/* A new detached mount of a file system; options are name, value, ..., NULL (value NULL: a flag).
 */
int mount_new(const char *type, const char *const *options, uint64_t attributes);

/* A detached overlay; read-only if upper is NULL (lower then names two directories or more). Paths
 * are relative to the working directory and hold neither ':' nor ','. Its own marks are
 * user.overlay.*. */
int mount_overlay(const char *lower, const char *upper, const char *work);

/* Attaches a detached mount at path (or at dirfd itself if path is empty). */
int mount_move(int tree, int dirfd, const char *path);
