/* Kept changes: see kept.h. Runs in the command with the caller's rights; the state directory is
 * the caller's own and is read by descriptor. */
#include "files/kept.h"

#include <dirent.h>
#include <fcntl.h>

#include "audit/state.h"
#include "base/fd.h"
#include "base/num.h"

#define OVERLAYS_MAX 4096

static void close_dir(DIR **d)
{
	if (*d)
		closedir(*d);
}

static int compare(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return (x > y) - (x < y);
}

static int list(struct kept *k, struct pale_err *err)
{
	int fd = fd_open_beneath(k->changes_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	_cleanup_(close_dir) DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d)
		return err_set(err, PALE_E_SYSTEM, "files", fd < 0 ? -fd : errno,
			       "reading the kept changes");
	for (struct dirent *e; (e = readdir(d));) {
		unsigned *grown;
		uint64_t n;

		if (num_parse_u64(e->d_name, OVERLAYS_MAX, &n) < 0)
			continue; /* "0.partial": of a capture that was cut short */
		grown = reallocarray(k->overlays, k->count + 1, sizeof(*grown));
		if (!grown)
			return err_nomem(err, "files");
		k->overlays = grown;
		k->overlays[k->count++] = (unsigned)n;
	}
	qsort(k->overlays, k->count, sizeof(k->overlays[0]), compare);
	return 0;
}

int kept_open(const char *ref, struct kept *ret, struct pale_err *err)
{
	_cleanup_kept_ struct kept k = KEPT_NONE;
	_cleanup_state_ struct audit_state state = AUDIT_STATE_NONE;
	int r = audit_find(ref, k.id, err);

	if (r == 0)
		r = audit_state_open(&state, err);
	if (r == 0)
		r = audit_state_run(&state, k.id, O_RDONLY, &k.run_fd, NULL, err);
	if (r < 0)
		return r;
	k.changes_fd = fd_open_beneath(k.run_fd, "changes", O_RDONLY | O_DIRECTORY, 0);
	if (k.changes_fd < 0 && k.changes_fd != -ENOENT)
		return err_set(err, PALE_E_SYSTEM, "files", -k.changes_fd,
			       "opening the kept changes");
	if (k.changes_fd >= 0) {
		r = list(&k, err);
		if (r < 0)
			return r;
	}
	if (k.count == 0)
		return err_set(err, PALE_E_NOTFOUND, "files", 0,
			       "run %s has no changes to look at: it had no overlay, or they were "
			       "discarded "
			       "(`pale audit list` shows the runs)",
			       k.id);
	*ret = k;
	k = KEPT_NONE;
	return 0;
}

void kept_done(struct kept *k)
{
	close_fd(&k->run_fd);
	close_fd(&k->changes_fd);
	free(k->overlays);
	*k = KEPT_NONE;
}

int kept_open_overlay(const struct kept *k, unsigned n, struct pale_err *err)
{
	char name[16];
	int fd;

	snprintf(name, sizeof(name), "%u", n);
	fd = fd_open_beneath(k->changes_fd, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return err_set(err, PALE_E_SYSTEM, "files", -fd, "opening the kept changes");
	return fd;
}

/* One directory of changes/, with the files that we know: anything else is not ours to remove. */
static int remove_one(const struct kept *k, const char *name)
{
	static const char *const files[] = {"manifest.jsonl", "contents", "journal", "meta.json"};
	_cleanup_close_ int dir = fd_open_beneath(k->changes_fd, name, O_RDONLY | O_DIRECTORY, 0);

	if (dir < 0)
		return dir;
	for (size_t f = 0; f < ARRAY_SIZE(files); f++)
		if (unlinkat(dir, files[f], 0) < 0 && errno != ENOENT)
			return -errno;
	return unlinkat(k->changes_fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

int kept_remove(const struct kept *k, struct pale_err *err)
{
	int fd = fd_open_beneath(k->changes_fd, ".", O_RDONLY | O_DIRECTORY, 0), r = 0;
	_cleanup_(close_dir) DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d)
		return err_set(err, PALE_E_SYSTEM, "files", fd < 0 ? -fd : errno,
			       "reading the kept changes");
	/* Also "0.partial", of a capture that was cut short. */
	for (struct dirent *e; r == 0 && (e = readdir(d));)
		if (e->d_name[0] != '.')
			r = remove_one(k, e->d_name);
	if (r == 0 && unlinkat(k->run_fd, "changes", AT_REMOVEDIR) < 0)
		r = -errno;
	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, "files", -r, "removing the kept changes");
	return 0;
}
