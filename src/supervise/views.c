/* Views of the machine: see views.h. In the supervisor; the texts are the kernel's own, cut down by
 * src/plan/view.c. */
#include "views.h"

#include <fcntl.h>

#include "base/fd.h"
#include "plan/view.h"

#define STAGE	  "supervise"
#define MAX_BYTES (8u << 20) /* of /proc/cpuinfo on the largest machines */

static int host_text(const char *path, struct buf *text)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : buf_read_fd(text, fd);
}

static const char *const paths[VIEW_COUNT] = {[VIEW_CA_BUNDLE] = "certificate authorities",
					      [VIEW_CA] = "certificate authority",
					      [VIEW_JAVA] = "certificate authorities for Java",
					      [VIEW_MEMINFO] = "/proc/meminfo",
					      [VIEW_CPUINFO] = "/proc/cpuinfo",
					      [VIEW_STAT] = "/proc/stat"};

static int cut_down(const struct plan *plan, enum plan_view view, const char *host, struct buf *out)
{
	switch (view) {
	case VIEW_MEMINFO: return view_meminfo(out, host, plan->limits.memory_bytes);
	case VIEW_CPUINFO: return view_cpuinfo(out, host, plan->affinity);
	case VIEW_STAT: return view_stat(out, host, plan->affinity);
	case VIEW_CA_BUNDLE:
	case VIEW_CA:
	case VIEW_JAVA:
	case VIEW_COUNT: break;
	}
	return -EINVAL;
}

int views_read(const struct plan *plan, struct views *ret, struct pale_err *err)
{
	for (int i = 0; i < VIEWS_OF_MACHINE; i++) {
		_cleanup_buf_ struct buf host = BUF_INIT(MAX_BYTES);
		int r;

		ret->text[i] = BUF_INIT(MAX_BYTES);
		r = host_text(paths[i], &host);
		if (r == 0)
			r = cut_down(plan, (enum plan_view)i, host.data, &ret->text[i]);
		if (r < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, -r, "cannot make the box's %s",
				       paths[i]);
	}
	return 0;
}

int views_write(const struct views *v, const struct box *box, struct pale_err *err)
{
	for (int i = 0; i < VIEW_COUNT; i++) {
		int r = box->view_fds[i] < 0
				? 0
				: fd_write_all(box->view_fds[i], v->text[i].data, v->text[i].len);

		if (r < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, -r, "cannot write the box's %s",
				       paths[i]);
	}
	return 0;
}

void views_done(struct views *v)
{
	for (int i = 0; i < VIEW_COUNT; i++)
		buf_done(&v->text[i]);
}
