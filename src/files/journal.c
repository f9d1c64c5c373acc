/* The journal of an apply: see journal.h. One record at the start of a file of our own, overwritten
 * for each step; a kill leaves it whole, since it is one write. */
#include "files/journal.h"

#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/fd.h"

#define RECORD_MAX (6 * WALK_PATH_MAX + 4096)

int journal_open(int changes_fd, struct journal *ret, struct pale_err *err)
{
	int fd = fd_open_beneath(changes_fd, "journal", O_RDWR | O_CREAT, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, PALE_E_SYSTEM, "files", fd < 0 ? -fd : errno,
			       "opening the journal");
	*ret = (struct journal){.fd = fd,
				.written = st.st_size < RECORD_MAX ? (size_t)st.st_size : 0};
	return 0;
}

void journal_close(struct journal *j)
{
	close_fd(&j->fd);
}

int journal_write(struct journal *j, enum journal_state state, const char *path,
		  const char *temporary, uint64_t ino)
{
	_cleanup_buf_ struct buf b = BUF_INIT(RECORD_MAX);

	buf_addf(&b, "{\"state\":%d,\"ino\":%" PRId64 ",", (int)state, (int64_t)ino);
	if (manifest_format_bytes(&b, "path", path, strlen(path)) < 0)
		return -ENOMEM;
	buf_addf(&b, ",\"temporary\":\"%s\"}", temporary);
	while (!b.failed && b.len + 1 < j->written)
		buf_add(&b, " ", 1);
	buf_add(&b, "\n", 1);
	if (b.failed)
		return -ENOMEM;
	if (pwrite(j->fd, b.data, b.len, 0) != (ssize_t)b.len)
		return errno ? -errno : -EIO;
	j->written = b.len;
	return 0;
}

int journal_read(const struct journal *j, struct journal_record *ret)
{
	_cleanup_buf_ struct buf b = BUF_INIT(RECORD_MAX);
	json_int_t state = 0, ino = 0;
	const char *temporary = NULL;
	_cleanup_free_ char *path = NULL;
	json_t *o;
	int r;

	*ret = (struct journal_record){0};
	if (lseek(j->fd, 0, SEEK_SET) < 0)
		return -errno;
	r = buf_read_fd(&b, j->fd);
	if (r < 0 && r != -ENOSPC)
		return r;
	o = json_loadb(b.data ? b.data : "", b.len, 0, NULL);
	if (json_unpack(o, "{s:I,s:I,s:s}", "state", &state, "ino", &ino, "temporary",
			&temporary) == 0 &&
	    (state == JOURNAL_MAKING || state == JOURNAL_SWAPPING) && !strchr(temporary, '/') &&
	    strncmp(temporary, ".pale-apply-", 12) == 0 && manifest_get_path(o, &path) == 0) {
		ret->temporary = strdup(temporary);
		ret->path = take_ptr(path);
		ret->ino = (uint64_t)ino;
		ret->state = ret->temporary ? (enum journal_state)state : JOURNAL_IDLE;
	}
	json_decref(o);
	return 0;
}

void journal_record_done(struct journal_record *r)
{
	free(r->path);
	free(r->temporary);
	*r = (struct journal_record){0};
}
