/* Control groups, version 2: one directory a box (see cgroup.h).
 *
 * Runs in the supervisor with the caller's privileges. Where the directory goes:
 *
 *  - Below our own group if that is the real root (which alone may hold processes beside groups
 * with controllers), or if we are alone in it: we then move ourselves into a leaf first.
 *  - Else beside us or higher up, in the nearest ancestor that holds no processes of its own,
 * provided no group in between has a limit, which the box would otherwise escape.
 *  - Only where it is ours to write: by mode, and, where systemd runs, inside a unit with Delegate=
 *    (systemd is the only writer of everything else). A user's own manager, user@UID.service, is
 *    delegated to that manager and not to us.
 *  - Else systemd is asked for a scope: cgroup_systemd.c.
 *
 * Moving a process needs write permission on cgroup.procs of the common ancestor of where it is and
 * where it goes, also with CLONE_INTO_CGROUP; an unprivileged caller therefore needs to be inside
 * the delegated unit already. Hostile: nothing read here but numbers. */
#include "confine/cgroup_impl.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/str.h"

#define STAGE	  "confine"
#define LEAF	  "pale-supervisor"
#define PERIOD_US 100000

static bool empty_file(const char *dir, const char *file)
{
	char buf[16];

	return cgroup_file_read(dir, file, buf, sizeof(buf)) == 0;
}

/* True if the only process in it is this one. */
static bool alone_in(const char *dir)
{
	char buf[32], self[32];

	snprintf(self, sizeof(self), "%d\n", (int)getpid());
	return cgroup_file_read(dir, "cgroup.procs", buf, sizeof(buf)) > 0 &&
	       strcmp(buf, self) == 0;
}

static bool writable(struct cgroup_host *h, const char *dir)
{
	static const char *const files[] = {"", "/cgroup.procs", "/cgroup.subtree_control"};
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		int n = snprintf(path, sizeof(path), "%s%s", dir, files[i]);

		if (n < 0 || (size_t)n >= sizeof(path) || !cgroup_may(h, path, W_OK))
			return false;
	}
	return true;
}

/* No limit of its own that a box beside it would be outside of. */
static bool unlimited(const char *dir)
{
	static const char *const files[] = {"memory.max", "memory.high", "pids.max", "cpu.max",
					    "memory.swap.max"};
	char buf[64];

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		if (cgroup_file_read(dir, files[i], buf, sizeof(buf)) > 0 &&
		    !str_starts(buf, "max"))
			return false;
	}
	return true;
}

static bool delegated_by(const char *dir, const char *name)
{
	char value[8] = "";

	/* user.delegate since systemd 251, readable by anybody; trusted.delegate before, by root.
	 */
	if (getxattr(dir, "user.delegate", value, sizeof(value) - 1) < 1 &&
	    getxattr(dir, "trusted.delegate", value, sizeof(value) - 1) < 1)
		return false;
	return value[0] == '1' && !str_starts(name, "user@");
}

/* Whether the unit that dir belongs to is delegated to those inside it. */
static bool delegated(const char *dir, size_t mount_len)
{
	static const char *const units[] = {".scope", ".service", ".slice",
					    ".mount", ".socket",  ".swap"};
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s", dir);
	while (strlen(path) > mount_len) {
		char *slash = strrchr(path, '/');
		const char *name = slash + 1;

		for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
			if (str_ends(name, units[i]))
				return delegated_by(path, name);
		}
		*slash = '\0';
	}
	return false;
}

/* What the controllers file of a directory offers. */
static void set_controllers(struct cgroup_host *ret, const char *dir)
{
	char text[256] = "";

	(void)!cgroup_file_read(dir, "cgroup.controllers", text, sizeof(text));
	ret->memory = cgroup_word(text, "memory");
	ret->pids = cgroup_word(text, "pids");
	ret->cpu = cgroup_word(text, "cpu");
	ret->cputime = true; /* cpu.stat is there without the controller */
}

static void explain_missing(struct cgroup_host *ret, const struct cgroup_place *place)
{
	char root[PATH_MAX], text[256] = "";

	if (ret->memory && ret->pids && ret->cpu)
		return;
	snprintf(root, sizeof(root), "%.*s", (int)place->mount_len, place->dir);
	(void)!cgroup_file_read(root, "cgroup.controllers", text, sizeof(text));
	if (!ret->memory && !cgroup_word(text, "memory"))
		cgroup_why(ret, "the kernel has the memory controller switched off: boot with "
				"cgroup_enable=memory");
	else
		cgroup_why(ret,
			   "%s%s%snot enabled for \"%s\": enable in cgroup.subtree_control of each "
			   "group above, or by systemd's Delegate=",
			   ret->memory ? "" : "memory ", ret->pids ? "" : "pids ",
			   ret->cpu ? "" : "cpu ", ret->base);
}

void cgroup_v2_probe(const struct cgroup_source *src, const struct cgroup_places *places,
		     struct cgroup_host *ret)
{
	const struct cgroup_place *place = &places->v2;
	bool systemd = access(src->systemd, F_OK) == 0;
	char dir[PATH_MAX], reason[200] = "";

	ret->kill = cgroup_has_file(place->dir, "cgroup.kill") ||
		    !cgroup_has_file(place->dir, "cgroup.events");
	/* Since 5.2; a root has neither file. */
	ret->freeze = cgroup_has_file(place->dir, "cgroup.freeze") ||
		      !cgroup_has_file(place->dir, "cgroup.events");
	ret->swap = true; /* whether memory.swap.max is there shows when the group is made */
	memcpy(dir, place->dir, strlen(place->dir) + 1);
	for (;;) {
		bool own = strcmp(dir, place->dir) == 0;
		bool top = strlen(dir) <= place->mount_len;
		/* Only the true root has no cgroup.events; that of a cgroup namespace has one. */
		bool real_root = top && !cgroup_has_file(dir, "cgroup.events");
		bool vacant = real_root || empty_file(dir, "cgroup.procs");

		if (!writable(ret, dir)) {
			if (!reason[0])
				snprintf(reason, sizeof(reason), "\"%.120s\" is not writable", dir);
			break;
		}
		if (systemd && !delegated(dir, place->mount_len)) {
			snprintf(reason, sizeof(reason),
				 "\"%.100s\" is systemd's and not delegated", dir);
			break;
		}
		if (vacant || (own && alone_in(dir))) {
			if (strlen(dir) >= sizeof(ret->base))
				break;
			memcpy(ret->base, dir, strlen(dir) + 1);
			ret->kind = CGROUP_V2;
			ret->vacate = !vacant;
			set_controllers(ret, dir);
			explain_missing(ret, place);
			return;
		}
		if (own)
			snprintf(reason, sizeof(reason),
				 "\"%.80s\" holds other processes: move them into a group of their "
				 "own below "
				 "it",
				 dir);
		if (top || !unlimited(dir))
			break;
		*strrchr(dir, '/') = '\0';
	}
	if (systemd) {
		cgroup_systemd_probe(src, places, ret);
		if (ret->kind != CGROUP_NONE)
			return;
	}
	ret->swap = ret->kill = ret->freeze = false;
	cgroup_why(ret, "%s", reason);
	if (!systemd)
		cgroup_why(ret,
			   src->uid == 0
				   ? "in a container: mount /sys/fs/cgroup writable and move the "
				     "processes of its root into a child group"
				   : "as root: make a group, chown it and its cgroup.procs and "
				     "cgroup.subtree_control to the user, and start Pale in a "
				     "child of it");
}

static int v2_attach(struct cgroup *g, pid_t pid, struct pale_err *err)
{
	int r = cgroup_file_write_u64(g->group[0].path, "cgroup.procs", (uint64_t)pid);

	if (r == -EACCES)
		return err_set(err, PALE_E_HOST, STAGE, -r,
			       "moving a process into the control group \"%s\": it must come from "
			       "inside the "
			       "same delegated unit",
			       g->group[0].path);
	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, -r,
			       "moving a process into the control group \"%s\"", g->group[0].path);
	return 0;
}

int cgroup_v2_usage(struct cgroup *g, struct cgroup_usage *ret, struct pale_err *err)
{
	const char *dir = g->group[0].path;
	char buf[1024];

	/* A scope can go away in the middle of this: what cannot be read any more is as it was. */
	*ret = g->last;
	ssize_t n = cgroup_file_read(dir, "cpu.stat", buf, sizeof(buf));

	if (n < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, (int)-n, "reading \"%s/cpu.stat\"", dir);
	ret->cpu_us = cgroup_key(buf, "usage_usec");
	if (g->limits.memory_bytes) {
		uint64_t now = 0;

		/* Since kernel 5.19; before, the largest value that was seen. */
		if (cgroup_file_u64(dir, "memory.peak", &ret->memory_peak_bytes) < 0) {
			(void)!cgroup_file_u64(dir, "memory.current", &now);
			ret->memory_peak_bytes =
				now > g->last.memory_peak_bytes ? now : g->last.memory_peak_bytes;
		}
		if (cgroup_file_read(dir, "memory.events", buf, sizeof(buf)) > 0)
			ret->oom_kills = cgroup_key(buf, "oom_kill");
	}
	if (g->limits.processes) {
		(void)!cgroup_file_u64(dir, "pids.peak", &ret->processes_peak);
		if (cgroup_file_read(dir, "pids.events", buf, sizeof(buf)) > 0)
			ret->processes_refused = cgroup_key(buf, "max");
	}
	return 0;
}

uint64_t cgroup_v2_throttled_us(const struct cgroup *g)
{
	char buf[1024];

	if (cgroup_file_read(g->group[0].path, "cpu.stat", buf, sizeof(buf)) < 0)
		return 0;
	return cgroup_key(buf, "throttled_usec");
}

/* Since kernel 5.14 one write kills all, also those that are being forked just now. */
void cgroup_v2_stop_forks(struct cgroup *g)
{
	if (cgroup_file_write(g->group[0].path, "cgroup.kill", "1") < 0)
		cgroup_file_write(g->group[0].path, "pids.max", "0");
}

/* The file always polls readable, and POLLPRI is what says that it changed; an epoll set that asks
 * for EPOLLPRI alone turns that into a descriptor that any loop can watch for reading. (inotify
 * would do too, but closing it waits for a grace period: 10 ms at the end of each run.) */
int cgroup_v2_watch_open(struct cgroup *g)
{
	g->event_fd = epoll_create1(EPOLL_CLOEXEC);
	return g->event_fd < 0 ? -errno : 0;
}

int cgroup_v2_watch_start(struct cgroup *g)
{
	struct epoll_event e = {.events = EPOLLPRI | EPOLLET};
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/memory.events", g->group[0].path);
	g->watch_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (g->watch_fd < 0)
		return -errno;
	cgroup_v2_drain(g); /* changes are reported since the last read */
	return epoll_ctl(g->event_fd, EPOLL_CTL_ADD, g->watch_fd, &e) < 0 ? -errno : 0;
}

void cgroup_v2_drain(struct cgroup *g)
{
	struct epoll_event e;
	char buf[256];

	if (g->watch_fd < 0)
		return;
	/* Edge-triggered: taking the event rearms, also once the group and with it the file is
	 * gone. */
	(void)!epoll_wait(g->event_fd, &e, 1, 0);
	(void)!pread(g->watch_fd, buf, sizeof(buf), 0);
}

/* Our own group must hold no process before it can give controllers to groups below it. */
static int vacate(const char *base, struct pale_err *err)
{
	char leaf[PATH_MAX];

	snprintf(leaf, sizeof(leaf), "%s/" LEAF, base);
	if (mkdir(leaf, 0755) < 0 && errno != EEXIST)
		return err_set(err, PALE_E_HOST, STAGE, errno, "making the control group \"%s\"",
			       leaf);
	int r = cgroup_file_write(leaf, "cgroup.procs", "0");

	if (r < 0)
		return err_set(err, PALE_E_HOST, STAGE, -r, "moving into the control group \"%s\"",
			       leaf);
	return 0;
}

static int enable(const struct cgroup_host *host, const struct cgroup_limits *limits,
		  struct pale_err *err)
{
	char enabled[256] = "", text[64];
	int r;

	(void)!cgroup_file_read(host->base, "cgroup.subtree_control", enabled, sizeof(enabled));
	snprintf(text, sizeof(text), "%s%s%s",
		 limits->memory_bytes && !cgroup_word(enabled, "memory") ? "+memory " : "",
		 limits->processes && !cgroup_word(enabled, "pids") ? "+pids " : "",
		 limits->cpus_milli && !cgroup_word(enabled, "cpu") ? "+cpu " : "");
	if (!text[0])
		return 0;
	if (host->vacate) {
		r = vacate(host->base, err);
		if (r < 0)
			return r;
	}
	r = cgroup_file_write(host->base, "cgroup.subtree_control", text);
	if (r < 0)
		return err_set(err, PALE_E_HOST, STAGE, -r,
			       "enabling \"%s\" in \"%s/cgroup.subtree_control\"", text,
			       host->base);
	return 0;
}

static int limit_memory(const char *dir, uint64_t bytes, struct pale_err *err)
{
	int r = cgroup_file_write_u64(dir, "memory.max", bytes);

	if (r < 0)
		return cgroup_limit_failed(dir, "memory.max", r, err);
	r = cgroup_file_write(dir, "memory.swap.max", "0");
	if (r < 0 && r != -ENOENT)
		return cgroup_limit_failed(dir, "memory.swap.max", r, err);
	if (r == -ENOENT && cgroup_has_file("/proc", "swaps")) {
		char buf[256];

		/* A kernel with swap whose accounting is switched off; harmless as long as there is
		 * none. */
		if (cgroup_file_read("/proc", "swaps", buf, sizeof(buf)) > 0 && strchr(buf, '\n') &&
		    strchr(buf, '\n')[1])
			return err_set(
				err, PALE_E_HOST, STAGE, 0,
				"swap is not accounted on this host: boot with swapaccount=1");
	}
	/* Since 4.19: all of the box dies together, not the one process that happened to be the
	 * largest. */
	r = cgroup_file_write(dir, "memory.oom.group", "1");
	if (r < 0 && r != -ENOENT)
		return cgroup_limit_failed(dir, "memory.oom.group", r, err);
	return 0;
}

int cgroup_v2_create(const struct cgroup_host *host, struct cgroup *g, const char *name,
		     struct pale_err *err)
{
	static const struct cgroup_ops ops = {
		.attach_begin = v2_attach,
		.usage = cgroup_v2_usage,
		.throttled_us = cgroup_v2_throttled_us,
		.stop_forks = cgroup_v2_stop_forks,
	};
	const char *dir = g->group[0].path;
	int r;

	g->ops = &ops;
	r = enable(host, &g->limits, err);
	if (r == 0)
		r = cgroup_dir_make(g, host->base, name, err);
	if (r < 0)
		return r;
	if (g->limits.memory_bytes) {
		r = limit_memory(dir, g->limits.memory_bytes, err);
		if (r < 0)
			return r;
		r = cgroup_v2_watch_open(g);
		if (r == 0)
			r = cgroup_v2_watch_start(g);
		if (r < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, -r,
				       "watching \"%s/memory.events\"", dir);
	}
	if (g->limits.processes) {
		r = cgroup_file_write_u64(dir, "pids.max", g->limits.processes);
		if (r < 0)
			return cgroup_limit_failed(dir, "pids.max", r, err);
	}
	if (g->limits.cpus_milli) {
		uint64_t quota = g->limits.cpus_milli * PERIOD_US / 1000;

		/* The period stays the kernel's; below 1 ms a quota is refused. */
		r = cgroup_file_write_u64(dir, "cpu.max", quota < 1000 ? 1000 : quota);
		if (r < 0)
			return cgroup_limit_failed(dir, "cpu.max", r, err);
	}
	g->clone_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (g->clone_fd < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "opening \"%s\"", dir);
	return 0;
}
