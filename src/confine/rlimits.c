/* Resource limits: see rlimits.h (getrlimit(2)).
 *
 * Planned in the supervisor with the caller's privileges; applied in the payload's process, without
 * any. No input is hostile. Soft and hard limit are the same: what is inside cannot raise either,
 * for that takes CAP_SYS_RESOURCE in the host's user namespace.
 *
 * Memory without a control group: RLIMIT_DATA, not RLIMIT_AS. Node, Java and Go reserve address
 * space by the gigabyte (PROT_NONE, not counted as data) and do not start under an address space
 * limit near their real use. RLIMIT_DATA counts what is private and writable, touched or not: also
 * stacks of threads, 8 MiB each by default, so those are allowed for on top. It is a backstop for
 * one process between two samples of supervise/usage.c, and not the limit: it does not count shared
 * memory, and each process has its own. */
#include "confine/rlimits.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "base/num.h"

#define STAGE	    "confine"
#define STACK_BYTES (8u << 20)
/* The share of threads' stacks is bounded, or a generous process limit would make the backstop
 * moot. */
#define STACKS_MAX  128

static void add(struct rlimits *r, int resource, const char *name, uint64_t value)
{
	r->row[r->n++] = (struct rlimits_row){resource, value, name};
}

int rlimits_plan(const struct policy_limits *limits, const struct rlimits_mode *mode,
		 struct rlimits *ret, struct pale_err *err)
{
	memset(ret, 0, sizeof(*ret));
	/* Not 0: a handler to which the kernel pipes core dumps gets them whatever the limit is,
	 * but for this one (core(5), fs/coredump.c). It is below a page, so that no file is written
	 * either. */
	add(ret, RLIMIT_CORE, "RLIMIT_CORE", 1);
	/* Real time, and more of the processor than others, which a caller may be allowed, would
	 * take the host from everybody else. */
	add(ret, RLIMIT_RTPRIO, "RLIMIT_RTPRIO", 0);
	add(ret, RLIMIT_NICE, "RLIMIT_NICE", 0);
	if (limits->open_files)
		add(ret, RLIMIT_NOFILE, "RLIMIT_NOFILE", limits->open_files);
	if (limits->file_size_bytes)
		add(ret, RLIMIT_FSIZE, "RLIMIT_FSIZE", limits->file_size_bytes);
	/* A backstop of the supervisor's own accounting, for one process. The kernel counts
	 * seconds; one more, so that the supervisor, which knows the whole box, is the one to say
	 * why. */
	if (limits->cpu_ms)
		add(ret, RLIMIT_CPU, "RLIMIT_CPU", limits->cpu_ms / 1000 + 2);
	/* Memory that reclaim cannot touch, and messages that live in the kernel. */
	add(ret, RLIMIT_MEMLOCK, "RLIMIT_MEMLOCK", 8u << 20);
	add(ret, RLIMIT_MSGQUEUE, "RLIMIT_MSGQUEUE", 819200);
	if (limits->processes)
		add(ret, RLIMIT_SIGPENDING, "RLIMIT_SIGPENDING", 1024 + limits->processes);
	if (limits->processes)
		add(ret, RLIMIT_NPROC, "RLIMIT_NPROC", limits->processes + mode->processes_extra);
	if (mode->memory && limits->memory_bytes) {
		/* Never more than as much again as the limit itself. */
		uint64_t stacks = limits->processes * STACK_BYTES;

		if (limits->processes > STACKS_MAX || stacks > limits->memory_bytes)
			stacks = limits->memory_bytes;
		add(ret, RLIMIT_DATA, "RLIMIT_DATA", limits->memory_bytes + stacks);
	}

	for (size_t i = 0; i < ret->n; i++) {
		struct rlimits_row *row = &ret->row[i];
		struct rlimit now;

		if (getrlimit((__rlimit_resource_t)row->resource, &now) < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, errno, "reading %s", row->name);
		if (now.rlim_max == RLIM_INFINITY || row->value <= now.rlim_max || geteuid() == 0)
			continue;
		if (row->resource == RLIMIT_NOFILE)
			return err_set(
				err, PALE_E_HOST, STAGE, 0,
				"the policy allows %llu open files, but this host's hard limit is "
				"%llu: "
				"lower limits.open_files, or raise it (\"* hard nofile %llu\" in "
				"/etc/security/limits.conf, LimitNOFILE= in a systemd unit)",
				(unsigned long long)row->value, (unsigned long long)now.rlim_max,
				(unsigned long long)row->value);
		/* A lower limit around us keeps what the policy promises, which is an upper bound.
		 */
		row->value = now.rlim_max;
	}
	return 0;
}

int rlimits_raise(const struct rlimits *r, pid_t child, struct pale_err *err)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct rlimits_row *row = &r->row[i];
		struct rlimit now;

		if (getrlimit((__rlimit_resource_t)row->resource, &now) < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, errno, "reading %s", row->name);
		if (now.rlim_max == RLIM_INFINITY || row->value <= now.rlim_max)
			continue;
		struct rlimit wanted = {.rlim_cur = now.rlim_cur, .rlim_max = row->value};

		if (prlimit(child, (__rlimit_resource_t)row->resource, &wanted, NULL) < 0)
			return err_set(err, PALE_E_HOST, STAGE, errno, "raising %s to %llu",
				       row->name, (unsigned long long)row->value);
	}
	return 0;
}

int rlimits_apply(const struct rlimits *r, struct pale_err *err)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct rlimit value = {r->row[i].value, r->row[i].value};

		if (setrlimit((__rlimit_resource_t)r->row[i].resource, &value) < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, errno, "setting %s to %llu",
				       r->row[i].name, (unsigned long long)r->row[i].value);
	}
	return 0;
}

bool rlimits_nproc_per_box(void)
{
	struct utsname u;
	unsigned major = 0, minor = 0;

	/* The count itself cannot be seen from outside, so the release must do. */
	if (uname(&u) < 0)
		return false;
	char *end;

	major = (unsigned)strtoul(u.release, &end, 10);
	if (*end == '.')
		minor = (unsigned)strtoul(end + 1, NULL, 10);
	return major > 5 || (major == 5 && minor >= 14);
}
