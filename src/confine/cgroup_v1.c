/* Control groups, version 1: a directory in each hierarchy that a limit needs (see cgroup.h).
 *
 * Runs in the supervisor with the caller's privileges, usually root's: v1 is not delegated by
 * anybody unless the directory was made the user's own. A group is made below our own of the same
 * controller, so that limits around us hold for the box too. Hostile: nothing read here but
 * numbers. */
#include "confine/cgroup_impl.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#define STAGE	  "confine"
#define PERIOD_US 100000 /* the kernel's default; not written, to save the call */

static bool no_swap(const char *swaps, struct cgroup_host *h)
{
	char buf[512];
	_cleanup_close_ int fd = open(swaps, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		cgroup_note(h, -errno);
		return errno == ENOENT;
	}
	ssize_t n = read(fd, buf, sizeof(buf) - 1);

	if (n < 0) {
		cgroup_note(h, -errno);
		return false;
	}
	buf[n] = '\0';
	/* A heading, and a line for each. */
	const char *end = strchr(buf, '\n');

	return !end || !end[1];
}

void cgroup_v1_probe(const struct cgroup_source *src, const struct cgroup_places *places,
		     struct cgroup_host *ret)
{
	static const char *const names[] = {"memory", "pids", "cpu", "cpuacct", "freezer"};
	bool have[CGROUP_V1_COUNT] = {false};
	const char *not_writable = NULL;

	for (int c = 0; c < CGROUP_V1_COUNT; c++) {
		const struct cgroup_place *p = &places->v1[c];

		/* No limit is kept by it: where it is missing, signals do. */
		if (c == CGROUP_FREEZER && (!p->dir[0] || !cgroup_may(ret, p->dir, W_OK)))
			continue;
		if (!p->dir[0]) {
			if (c == CGROUP_MEMORY && !p->listed)
				cgroup_why(ret, "the memory controller is not enabled: boot with "
						"cgroup_enable=memory swapaccount=1");
			else
				cgroup_why(ret,
					   "the %s controller is not mounted: mount -t cgroup -o "
					   "%s cgroup /sys/fs/cgroup/%s",
					   names[c], names[c], names[c]);
		} else if (!cgroup_may(ret, p->dir, W_OK)) {
			not_writable = p->dir;
		} else {
			size_t len = strlen(p->dir);

			have[c] = len < sizeof(ret->v1[c]);
			if (have[c])
				memcpy(ret->v1[c], p->dir, len + 1);
		}
	}
	if (not_writable && src->uid == 0)
		cgroup_why(ret,
			   "\"%s\" is read-only here: in a container, mount the cgroup file system "
			   "writable",
			   not_writable);
	else if (not_writable)
		cgroup_why(
			ret,
			"\"%s\" belongs to root, and version 1 is not delegated: run as root, boot "
			"with systemd.unified_cgroup_hierarchy=1, or have root make and chown a "
			"group in each of memory, pids, cpu, cpuacct and start Pale in it",
			not_writable);
	ret->memory = have[CGROUP_MEMORY];
	ret->pids = have[CGROUP_PIDS];
	ret->cpu = have[CGROUP_CPU] && cgroup_has_file(ret->v1[CGROUP_CPU], "cpu.cfs_quota_us");
	/* The root of the cpu hierarchy has no quota file of its own, its children do. */
	ret->cpu |= have[CGROUP_CPU] &&
		    places->v1[CGROUP_CPU].dir[places->v1[CGROUP_CPU].mount_len] == '\0';
	ret->cputime = have[CGROUP_CPUACCT];
	ret->freeze = have[CGROUP_FREEZER];
	ret->swap = have[CGROUP_MEMORY] &&
		    (cgroup_has_file(ret->v1[CGROUP_MEMORY], "memory.memsw.limit_in_bytes") ||
		     no_swap(src->swaps, ret));
	if (have[CGROUP_MEMORY] && !ret->swap)
		cgroup_why(ret, "swap is not accounted: boot with swapaccount=1");
	if (ret->memory || ret->pids || ret->cpu || ret->cputime)
		ret->kind = CGROUP_V1;
}

static int v1_attach(struct cgroup *g, pid_t pid, struct pale_err *err)
{
	for (size_t i = 0; i < g->ngroups; i++) {
		int r = cgroup_file_write_u64(g->group[i].path, "cgroup.procs", (uint64_t)pid);

		if (r < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, -r,
				       "moving a process into the control group \"%s\"",
				       g->group[i].path);
	}
	return 0;
}

static const char *dir_of(const struct cgroup *g, enum cgroup_v1_controller c)
{
	return g->of[c] < 0 ? NULL : g->group[g->of[c]].path;
}

static int v1_usage(struct cgroup *g, struct cgroup_usage *ret, struct pale_err *err)
{
	const char *memory = dir_of(g, CGROUP_MEMORY), *pids = dir_of(g, CGROUP_PIDS);
	const char *cpuacct = dir_of(g, CGROUP_CPUACCT);
	char buf[512];
	uint64_t ns;

	memset(ret, 0, sizeof(*ret));
	if (cpuacct) {
		int r = cgroup_file_u64(cpuacct, "cpuacct.usage", &ns);

		if (r < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, -r, "reading \"%s\"", cpuacct);
		ret->cpu_us = ns / 1000;
	}
	if (memory) {
		int r = cgroup_file_u64(memory, "memory.memsw.max_usage_in_bytes",
					&ret->memory_peak_bytes);

		if (r < 0)
			r = cgroup_file_u64(memory, "memory.max_usage_in_bytes",
					    &ret->memory_peak_bytes);
		if (r < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, -r, "reading \"%s\"", memory);
		if (cgroup_file_read(memory, "memory.oom_control", buf, sizeof(buf)) > 0)
			ret->oom_kills = cgroup_key(buf, "oom_kill");
	}
	if (pids) {
		(void)!cgroup_file_u64(pids, "pids.peak", &ret->processes_peak);
		if (cgroup_file_read(pids, "pids.events", buf, sizeof(buf)) > 0)
			ret->processes_refused = cgroup_key(buf, "max");
	}
	return 0;
}

static uint64_t v1_throttled_us(const struct cgroup *g)
{
	const char *cpu = dir_of(g, CGROUP_CPU);
	char buf[512];

	if (!cpu || cgroup_file_read(cpu, "cpu.stat", buf, sizeof(buf)) < 0)
		return 0;
	return cgroup_key(buf, "throttled_time") / 1000;
}

static void v1_stop_forks(struct cgroup *g)
{
	const char *pids = dir_of(g, CGROUP_PIDS);

	/* Where it fails the loop of the caller still ends at its deadline. */
	if (pids)
		cgroup_file_write(pids, "pids.max", "0");
}

/* An eventfd that counts each time the limit could not be kept by reclaim. */
static void v1_watch(struct cgroup *g)
{
	const char *memory = dir_of(g, CGROUP_MEMORY);
	char path[PATH_MAX], text[48];

	if (!memory || !g->limits.memory_bytes)
		return;
	_cleanup_close_ int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	snprintf(path, sizeof(path), "%s/memory.oom_control", memory);
	_cleanup_close_ int control = open(path, O_RDONLY | O_CLOEXEC);

	if (event < 0 || control < 0)
		return;
	snprintf(text, sizeof(text), "%d %d", event, control);
	if (cgroup_file_write(memory, "cgroup.event_control", text) == 0)
		g->event_fd = take_fd(&event);
}

static int limit_memory(struct cgroup *g, const char *dir, bool swap_accounted,
			struct pale_err *err)
{
	/* Memory first: the kernel refuses a limit of memory that is above that of memory plus
	 * swap, and both start without one. */
	int r = cgroup_file_write_u64(dir, "memory.limit_in_bytes", g->limits.memory_bytes);

	if (r < 0)
		return cgroup_limit_failed(dir, "memory.limit_in_bytes", r, err);
	r = cgroup_file_write_u64(dir, "memory.memsw.limit_in_bytes", g->limits.memory_bytes);
	if (r == -ENOENT && swap_accounted)
		r = 0; /* there is no swap */
	else if (r == -ENOENT)
		r = cgroup_file_write(dir, "memory.swappiness", "0");
	if (r < 0)
		return cgroup_limit_failed(dir, "memory.memsw.limit_in_bytes", r, err);
	/* Buffers of IP sockets have a counter of their own, and none unless it is limited. A
	 * socket that goes over it waits, as under the host's own limit, which the box must not use
	 * up. Not there: a kernel that does not count its own memory. */
	r = cgroup_file_write_u64(dir, "memory.kmem.tcp.limit_in_bytes",
				  g->limits.memory_bytes / 8);
	if (r < 0 && r != -ENOENT)
		return cgroup_limit_failed(dir, "memory.kmem.tcp.limit_in_bytes", r, err);
	return 0;
}

int cgroup_v1_create(const struct cgroup_host *host, struct cgroup *g, const char *name,
		     struct pale_err *err)
{
	static const struct cgroup_ops ops = {
		.attach_begin = v1_attach,
		.usage = v1_usage,
		.throttled_us = v1_throttled_us,
		.watch = v1_watch,
		.stop_forks = v1_stop_forks,
	};
	const bool need[CGROUP_V1_COUNT] = {
		[CGROUP_MEMORY] = g->limits.memory_bytes, [CGROUP_PIDS] = g->limits.processes,
		[CGROUP_CPU] = g->limits.cpus_milli,	  [CGROUP_CPUACCT] = host->cputime,
		[CGROUP_FREEZER] = g->limits.freezer,
	};
	int r;

	g->ops = &ops;
	for (int c = 0; c < CGROUP_V1_COUNT; c++) {
		if (!need[c] || !host->v1[c][0])
			continue;
		for (int other = 0; other < c && g->of[c] < 0; other++) { /* mounted together */
			if (strcmp(host->v1[c], host->v1[other]) == 0)
				g->of[c] = g->of[other];
		}
		if (g->of[c] >= 0)
			continue;
		r = cgroup_dir_make(g, host->v1[c], name, err);
		if (r < 0)
			return r;
		g->of[c] = (int)g->ngroups - 1;
	}
	if (g->limits.memory_bytes) {
		r = limit_memory(g, dir_of(g, CGROUP_MEMORY), host->swap, err);
		if (r < 0)
			return r;
	}
	if (g->limits.processes) {
		const char *dir = dir_of(g, CGROUP_PIDS);

		r = cgroup_file_write_u64(dir, "pids.max", g->limits.processes);
		if (r < 0)
			return cgroup_limit_failed(dir, "pids.max", r, err);
	}
	if (g->limits.cpus_milli) {
		const char *dir = dir_of(g, CGROUP_CPU);
		uint64_t quota = g->limits.cpus_milli * PERIOD_US / 1000;

		/* Below 1 ms the kernel refuses. */
		r = cgroup_file_write_u64(dir, "cpu.cfs_quota_us", quota < 1000 ? 1000 : quota);
		if (r < 0)
			return cgroup_limit_failed(dir, "cpu.cfs_quota_us", r, err);
	}
	for (size_t i = 0; i < g->ngroups; i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s/tasks", g->group[i].path);
		g->group[i].join_fd = open(path, O_WRONLY | O_CLOEXEC);
		if (g->group[i].join_fd < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, errno, "opening \"%s\"", path);
	}
	return 0;
}
