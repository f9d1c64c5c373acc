/* Host ids for the boxes of root: 65536 of a reserved range each, so that two boxes share nothing
 * by uid.
 *
 * Runs in a root supervisor. A range is taken by locking one byte of a file; the lock goes with the
 * supervisor. The search starts at a random place, so that a range is not soon used again. */
#include "process.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "confine/userns.h"

#define STAGE	   "isolation"
#define RANGE_BASE 0x70000000U /* above what systemd and shadow hand out, below the signed end */
#define RANGES	   4000U

void uid_range_all(unsigned *ret_first, unsigned *ret_end)
{
	*ret_first = RANGE_BASE;
	*ret_end = RANGE_BASE + RANGES * USERNS_IDS;
}

int uid_range_take(unsigned *ret_base, int *ret_lock_fd, struct pale_err *err)
{
	_cleanup_close_ int dir = -1, fd = -1;
	unsigned start = 0;
	struct stat st;

	(void)!getrandom(&start, sizeof(start), GRND_NONBLOCK);
	if (mkdir("/run/pale", 0755) < 0 && errno != EEXIST)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make /run/pale");
	dir = fd_openat2(AT_FDCWD, "/run/pale", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, 0);
	if (dir < 0 && dir != -ELOOP && dir != -ENOTDIR)
		return err_set(err, PALE_E_SYSTEM, STAGE, -dir, "cannot open /run/pale");
	if (dir < 0 || fstat(dir, &st) < 0 || st.st_uid != 0 || (st.st_mode & 022))
		return err_set(err, PALE_E_SYSTEM, STAGE, 0,
			       "/run/pale is not a directory that only root can write");
	fd = fd_open_beneath(dir, "uids", O_RDWR | O_CREAT, 0600);
	if (fd < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, -fd, "cannot open /run/pale/uids");
	for (unsigned i = 0; i < RANGES; i++) {
		unsigned n = (start + i) % RANGES;
		struct flock lock = {
			.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)n, .l_len = 1};

		if (fcntl(fd, F_OFD_SETLK, &lock) == 0) {
			*ret_base = RANGE_BASE + n * USERNS_IDS;
			*ret_lock_fd = take_fd(&fd);
			return 0;
		}
		if (errno != EAGAIN && errno != EACCES)
			return err_set(err, PALE_E_SYSTEM, STAGE, errno,
				       "cannot lock a range of ids");
	}
	return err_set(err, PALE_E_HOST, STAGE, 0,
		       "all %u ranges of user ids are in use by other boxes", RANGES);
}
