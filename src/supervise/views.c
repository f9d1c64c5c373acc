/* Views of the machine: see views.h. In the supervisor; the texts are the kernel's own, cut down by
 * src/plan/view.c. */
#include "views.h"

#include <fcntl.h>

#include "base/buf.h"
#include "base/fd.h"
#include "plan/view.h"

#define STAGE	  "supervise"
#define MAX_BYTES (8u << 20) /* of /proc/cpuinfo on the largest machines */

static int host_text(const char *path, struct buf *text)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : buf_read_fd(text, fd);
}

int views_write(const struct plan *plan, const struct box *box, struct pale_err *err)
{
	static const char *const paths[VIEW_COUNT] = {[VIEW_MEMINFO] = "/proc/meminfo",
						      [VIEW_CPUINFO] = "/proc/cpuinfo",
						      [VIEW_STAT] = "/proc/stat"};

	for (int i = 0; i < VIEW_COUNT; i++) {
		_cleanup_buf_ struct buf host = BUF_INIT(MAX_BYTES), text = BUF_INIT(MAX_BYTES);
		int r;

		if (box->view_fds[i] < 0)
			continue;
		r = host_text(paths[i], &host);
		if (r == 0)
			r = i == VIEW_MEMINFO
				    ? view_meminfo(&text, host.data, plan->limits.memory_bytes)
			    : i == VIEW_CPUINFO ? view_cpuinfo(&text, host.data, plan->affinity)
						: view_stat(&text, host.data, plan->affinity);
		if (r == 0)
			r = fd_write_all(box->view_fds[i], text.data, text.len);
		if (r < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, -r, "cannot make the box's %s",
				       paths[i]);
	}
	return 0;
}
