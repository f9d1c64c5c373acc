/* The host's side of a box's mounts: opened, checked, cloned, restricted.
 *
 * Runs in the set-up child (unprivileged: only there are the capabilities), or in a root
 * supervisor, which alone may map ids. The paths are the caller's; what they lead to is checked on
 * the descriptor that is then cloned, and only the clone is mounted. */
#include "process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "base/str.h"
#include "confine/mount.h"
#include "confine/userns.h"

#define STAGE "isolation"

static int open_checked(const struct step *s, struct stat *ret_st, struct pale_err *err)
{
	_cleanup_close_ int fd =
		fd_openat2(AT_FDCWD, s->source, O_PATH, 0,
			   RESOLVE_NO_MAGICLINKS | (s->real ? RESOLVE_NO_SYMLINKS : 0));

	if (fd == -ELOOP)
		return err_set(
			err, PALE_E_HOST, STAGE, 0,
			"a symbolic link has come into the path of %s since it was looked at",
			QUOTED(s->source));
	if (fd < 0 || fstat(fd, ret_st) < 0)
		return err_set(err, PALE_E_HOST, STAGE, fd < 0 ? -fd : errno, "cannot open %s",
			       QUOTED(s->source));
	if (s->device	 ? !S_ISCHR(ret_st->st_mode)
	    : s->is_file ? !S_ISREG(ret_st->st_mode)
			 : !S_ISDIR(ret_st->st_mode))
		return err_set(err, PALE_E_HOST, STAGE, 0,
			       "%s is not the kind of file it was when the plan was made",
			       QUOTED(s->source));
	return take_fd(&fd);
}

static int clone_restricted(const struct step *s, int fd, int userns_fd, struct pale_err *err)
{
	uint64_t flags = MOUNT_ATTR_NOSUID | MOUNT_ATTR_RDONLY | (s->device ? 0 : MOUNT_ATTR_NODEV);
	bool recursive = s->type == STEP_BIND && !s->is_file && !s->device;
	_cleanup_close_ int tree = mount_clone(fd, recursive);
	int r;

	if (tree == -EINVAL && !recursive)
		return err_set(err, PALE_E_HOST, STAGE, 0,
			       "%s has other file systems mounted below it; name the directories "
			       "in it one by one",
			       QUOTED(s->source));
	if (tree < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, -tree, "cannot clone the mount of %s",
			       QUOTED(s->source));
	/* Not every file system can map ids. Its files then show as nobody's, which takes nothing
	 * but convenience away; but the box's user must be able to use what was given to it. */
	r = mount_restrict(tree, flags, userns_fd, recursive);
	if (r < 0 && userns_fd >= 0 && s->swap_owner)
		return err_set(
			err, PALE_E_HOST, STAGE, -r,
			"the file system of %s cannot show its owner as the box's user (id-mapped "
			"mounts); "
			"run pale as the user who owns it, or keep it on ext4, xfs, btrfs or tmpfs",
			QUOTED(s->source));
	if ((r == -EINVAL || r == -EPERM) && userns_fd >= 0)
		r = mount_restrict(tree, flags, -1, recursive);
	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, -r,
			       "cannot make the mount of %s read-only", QUOTED(s->source));
	return take_fd(&tree);
}

int source_open(const struct step *s, struct pale_err *err)
{
	struct stat st;
	_cleanup_close_ int fd = open_checked(s, &st, err);

	return fd < 0 ? fd : clone_restricted(s, fd, -1, err);
}

/* What waits to be sent: one packet is dearer than all that is in it. */
struct batch {
	struct source_packet packet;
	int fds[SOURCES_A_PACKET];
};

static void batch_done(struct batch *b)
{
	for (uint32_t i = 0; i < b->packet.count; i++)
		close(b->fds[i]);
	b->packet.count = 0;
}

static int send_packet(int control_fd, const struct source_packet *packet, const int *fds,
		       size_t nfds, struct pale_err *err)
{
	int r = fd_send(control_fd, packet, sizeof(*packet), fds, nfds);

	if (child_gone(r))
		return 0;
	return r < 0 ? err_set(err, PALE_E_SYSTEM, STAGE, -r, "cannot hand over the mounts") : 0;
}

static int batch_send(struct batch *b, int control_fd, struct pale_err *err)
{
	int r = send_packet(control_fd, &b->packet, b->fds, b->packet.count, err);

	batch_done(b);
	return r;
}

static int open_mapped(const struct plan *plan, const struct step *s, int userns_fd, unsigned base,
		       struct pale_err *err)
{
	_cleanup_close_ int fd = -1, swapped = -1;
	struct stat st;

	fd = open_checked(s, &st, err);
	if (fd < 0)
		return fd;
	if (s->swap_owner) {
		swapped = userns_swapped(base, plan->uid, st.st_uid, plan->gid, st.st_gid, err);
		if (swapped < 0)
			return swapped;
	}
	return clone_restricted(s, fd, swapped >= 0 ? swapped : userns_fd, err);
}

int source_send_mapped(const struct plan *plan, enum box_role role, int userns_fd, unsigned base,
		       int control_fd, struct pale_err *err)
{
	struct source_packet end = {.count = SOURCE_PACKET_END};
	_cleanup_(batch_done) struct batch b = {.packet = {.count = 0}};
	int r = batch_send(&b, control_fd, err); /* the ids are mapped */

	for (size_t i = 0; r == 0 && i < plan->nsteps; i++) {
		const struct step *s = &plan->steps[i];
		int tree;

		/* Device nodes belong to everyone; devtmpfs cannot map ids. */
		if (!s->source || s->device || step_left_out(role, s))
			continue;
		tree = open_mapped(plan, s, userns_fd, base, err);
		if (tree < 0)
			return tree;
		b.packet.step[b.packet.count] = (uint32_t)i;
		b.fds[b.packet.count++] = tree;
		if (b.packet.count == SOURCES_A_PACKET)
			r = batch_send(&b, control_fd, err);
	}
	if (r == 0 && b.packet.count)
		r = batch_send(&b, control_fd, err);
	return r < 0 ? r : send_packet(control_fd, &end, NULL, 0, err);
}
