/* Speculation controls: see speculation.h. The probe runs in the supervisor and in `pale doctor`;
 * the restriction in the set-up child and in a zygote's fork, before the filter. Nothing hostile is
 * read. */
#include "confine/speculation.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "confine/core_sched.h"

#define STAGE		"confine"
#define VULNERABILITIES "/sys/devices/system/cpu/vulnerabilities/"

static const struct {
	const char *name;
	unsigned long which;
	unsigned long value;
	const char *remedy;
} controls[SPECULATION_CONTROLS] = {
	/* "Force": what runs in the box is who would take it back. */
	[SPECULATION_STORE_BYPASS] = {"store bypass", PR_SPEC_STORE_BYPASS, PR_SPEC_FORCE_DISABLE,
				      "it needs a processor (for a virtual machine: a hypervisor) "
				      "that offers SSBD, and a kernel that was not booted with "
				      "mitigations=off or nospec_store_bypass_disable"},
	[SPECULATION_INDIRECT_BRANCH] = {"indirect branch", PR_SPEC_INDIRECT_BRANCH,
					 PR_SPEC_FORCE_DISABLE,
					 "it needs a processor (for a virtual machine: a "
					 "hypervisor) that offers IBPB or STIBP, and a kernel that "
					 "was not booted with mitigations=off, nospectre_v2 or "
					 "spectre_v2_user=off"},
	/* Here "enable" is the protection. There is no force: a process that gives it up bares
	 * itself. */
	[SPECULATION_L1D_FLUSH] = {"L1D flush", PR_SPEC_L1D_FLUSH, PR_SPEC_ENABLE,
				   "it needs Linux 5.15 or later, booted with l1d_flush=on, and a "
				   "processor that offers it"},
};

/* The kernel asks the processor, not us: whether it has the weakness that the flush is for. */
static int leaks_l1d(bool *ret)
{
	_cleanup_close_ int fd = open(VULNERABILITIES "l1tf", O_RDONLY | O_CLOEXEC);
	char text[64] = "";

	if ((fd < 0 || read(fd, text, sizeof(text) - 1) < 0) && !err_is_lasting(errno))
		return -errno;
	*ret = !str_starts(text, "Not affected");
	return 0;
}

static enum speculation_state state_of(unsigned long says)
{
	if (says == PR_SPEC_NOT_AFFECTED)
		return SPECULATION_UNAFFECTED;
	if (says & PR_SPEC_PRCTL)
		return SPECULATION_BY_PROCESS;
	return says & PR_SPEC_ENABLE ? SPECULATION_ABSENT : SPECULATION_BY_HOST;
}

static int flush_state(unsigned long says, enum speculation_state *ret)
{
	bool leaks, siblings;
	int r = leaks_l1d(&leaks);

	if (r == 0)
		r = core_sched_siblings_run(&siblings);
	if (r < 0)
		return r;
	/* With siblings the kernel kills who asked for the flush (SIGBUS), as soon as it runs: the
	 * other thread could look while it is still there. */
	*ret = !leaks				   ? SPECULATION_UNAFFECTED
	       : says & PR_SPEC_PRCTL && !siblings ? SPECULATION_BY_PROCESS
						   : SPECULATION_ABSENT;
	return 0;
}

static int probe_one(enum speculation_control c, enum speculation_state *ret)
{
	int r = prctl(PR_GET_SPECULATION_CTRL, controls[c].which, 0, 0, 0);
	unsigned long says = r < 0 ? 0 : (unsigned long)r;

	if (r < 0 && !err_is_lasting(errno))
		return -errno;
	if (c == SPECULATION_L1D_FLUSH)
		return flush_state(says, ret);
	/* An error: a kernel from before the control. */
	*ret = r < 0 ? SPECULATION_ABSENT : state_of(says);
	return 0;
}

int speculation_probe(struct speculation_host *ret, struct pale_err *err)
{
	for (int c = 0; c < SPECULATION_CONTROLS; c++) {
		int r = probe_one((enum speculation_control)c, &ret->state[c]);

		if (r < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, -r,
				       "cannot look for the speculation control \"%s\"",
				       controls[c].name);
	}
	return 0;
}

const char *speculation_name(enum speculation_control c)
{
	return controls[c].name;
}

const char *speculation_remedy(enum speculation_control c)
{
	bool siblings = false;

	return c == SPECULATION_L1D_FLUSH && core_sched_siblings_run(&siblings) == 0 && siblings
		       ? "it needs simultaneous multithreading to be off (echo off > "
			 "/sys/devices/system/cpu/smt/control), Linux 5.15 or later booted with "
			 "l1d_flush=on, and a processor that offers it"
		       : controls[c].remedy;
}

int speculation_restrict(unsigned wanted, struct pale_err *err)
{
	for (int c = 0; c < SPECULATION_CONTROLS; c++)
		if (wanted & 1u << c &&
		    prctl(PR_SET_SPECULATION_CTRL, controls[c].which, controls[c].value, 0, 0) < 0)
			return err_set(err, PALE_E_HOST, STAGE, errno,
				       "cannot set the speculation control \"%s\"",
				       controls[c].name);
	return 0;
}
