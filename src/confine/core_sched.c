/* Core scheduling: see core_sched.h. The probe runs in the supervisor and in `pale doctor`; the
 * rest in the set-up child and in a zygote's fork, before the filter. Nothing hostile is read. */
#include "confine/core_sched.h"

#include <fcntl.h>
#include <linux/prctl.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

#define STAGE "confine"

bool core_sched_siblings_run(void)
{
	_cleanup_close_ int fd = open("/sys/devices/system/cpu/smt/active", O_RDONLY | O_CLOEXEC);
	char c = '1';

	return fd < 0 || read(fd, &c, 1) != 1 || c != '0';
}

enum core_sched_state core_sched_probe(void)
{
	uint64_t cookie;

	/* ENODEV: no core has a second thread; EINVAL: the kernel does not know the call. */
	if (prctl(PR_SCHED_CORE, PR_SCHED_CORE_GET, 0, PR_SCHED_CORE_SCOPE_THREAD, &cookie) == 0)
		return CORE_SCHED_OFFERED;
	if (errno == ENODEV)
		return CORE_SCHED_NO_THREADS;
	return core_sched_siblings_run() ? CORE_SCHED_ABSENT : CORE_SCHED_NO_THREADS;
}

int core_sched_separate(struct pale_err *err)
{
	return prctl(PR_SCHED_CORE, PR_SCHED_CORE_CREATE, 0, PR_SCHED_CORE_SCOPE_THREAD, 0) < 0
		       ? err_set(err, PALE_E_HOST, STAGE, errno,
				 "cannot give the box a core scheduling cookie")
		       : 0;
}
