/* The journal of an apply: see journal.h. One record of fixed length in a file of our own,
 * overwritten for each step; a kill leaves it whole, since it is one write. */
#include "files/journal.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/fd.h"

#define RECORD "%d %016" PRIx64 " %020zu %020zu %020zu %020" PRIu64 "\n"

int journal_open(int changes_fd, struct journal *ret, struct pale_err *err)
{
	int fd = fd_open_beneath(changes_fd, "journal", O_RDWR | O_CREAT, 0600);

	if (fd < 0)
		return err_set(err, PALE_E_SYSTEM, "files", -fd, "opening the journal");
	*ret = (struct journal){.fd = fd};
	return 0;
}

void journal_close(struct journal *j)
{
	close_fd(&j->fd);
}

int journal_write(struct journal *j, const struct journal_record *r)
{
	char line[128];
	int n = snprintf(line, sizeof(line), RECORD, (int)r->state, r->start, r->from, r->to,
			 r->entry, r->ino);
	ssize_t written = pwrite(j->fd, line, (size_t)n, 0);

	return written == n ? 0 : written < 0 ? -errno : -EIO;
}

int journal_read(const struct journal *j, struct journal_record *ret)
{
	char line[128] = "";
	ssize_t n = pread(j->fd, line, sizeof(line) - 1, 0);
	struct journal_record r = {0};
	int state;

	*ret = r;
	if (n < 0)
		return -errno;
	if (sscanf(line, "%1d %16" SCNx64 " %20zu %20zu %20zu %20" SCNu64, &state, &r.start,
		   &r.from, &r.to, &r.entry, &r.ino) != 6 ||
	    state < JOURNAL_IDLE || state > JOURNAL_SWAPPING)
		return 0;
	r.state = (enum journal_state)state;
	*ret = r;
	return 0;
}
