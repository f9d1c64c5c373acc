/* Core scheduling: see core_sched.h. The probe runs in the supervisor and in `pale doctor`; the
 * rest in the set-up child and in a zygote's fork, before the filter. Nothing hostile is read. */
#include "confine/core_sched.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

#define STAGE "confine"

int core_sched_siblings_run(bool *ret)
{
	_cleanup_close_ int fd = open("/sys/devices/system/cpu/smt/active", O_RDONLY | O_CLOEXEC);
	char c = '1';

	if ((fd < 0 || read(fd, &c, 1) < 0) && !err_is_lasting(errno))
		return -errno;
	*ret = c != '0';
	return 0;
}

int core_sched_probe(enum core_sched_state *ret, struct pale_err *err)
{
	uint64_t cookie;
	bool siblings = false;
	int r = 0;

	if (prctl(PR_SCHED_CORE, PR_SCHED_CORE_GET, 0, PR_SCHED_CORE_SCOPE_THREAD, &cookie) == 0) {
		*ret = CORE_SCHED_OFFERED;
		return 0;
	}
	/* ENODEV: no core has a second thread; EINVAL: the kernel does not know the call. */
	if (!err_is_lasting(errno))
		r = -errno;
	else if (errno != ENODEV)
		r = core_sched_siblings_run(&siblings);
	*ret = siblings ? CORE_SCHED_ABSENT : CORE_SCHED_NO_THREADS;
	return r < 0 ? err_set(err, PALE_E_SYSTEM, STAGE, -r, "cannot look for core scheduling")
		     : 0;
}

int core_sched_separate(struct pale_err *err)
{
	return prctl(PR_SCHED_CORE, PR_SCHED_CORE_CREATE, 0, PR_SCHED_CORE_SCOPE_THREAD, 0) < 0
		       ? err_set(err, PALE_E_HOST, STAGE, errno,
				 "cannot give the box a core scheduling cookie")
		       : 0;
}
