/* Control groups: what all kinds have in common (see cgroup.h).
 *
 * Runs in the supervisor, outside the box, with the caller's privileges. The files read are the
 * kernel's; hostile are only the numbers in them and the set of processes in a group, which can
 * grow while it is being killed. cgroup_create() must come before the box's first process,
 * cgroup_kill() before cgroup_destroy(). */
#include "confine/cgroup_impl.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/num.h"
#include "base/str.h"

#define STAGE	      "confine"
#define FILE_PATH     (CGROUP_PATH + 64)
#define KILL_BATCH    64    /* processes killed before their ends are awaited */
#define KILL_ROUND_US 20000 /* before the group is looked at again */
#define RECOVER_DIRS  65536 /* looked through for the groups of a lost supervisor */

/* ---- files ---- */

int cgroup_file_write(const char *dir, const char *file, const char *value)
{
	char path[FILE_PATH];
	int n = snprintf(path, sizeof(path), "%s/%s", dir, file);

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	/* One write: the kernel takes each as a whole value. */
	return write(fd, value, strlen(value)) < 0 ? -errno : 0;
}

int cgroup_file_write_u64(const char *dir, const char *file, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return cgroup_file_write(dir, file, text);
}

ssize_t cgroup_file_read(const char *dir, const char *file, char *buf, size_t size)
{
	char path[FILE_PATH];
	int n = snprintf(path, sizeof(path), "%s/%s", dir, file);

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	ssize_t len = read(fd, buf, size - 1);

	if (len < 0)
		return -errno;
	buf[len] = '\0';
	return len;
}

int cgroup_file_u64(const char *dir, const char *file, uint64_t *ret)
{
	char buf[64];
	ssize_t n = cgroup_file_read(dir, file, buf, sizeof(buf));

	if (n < 0)
		return (int)n;
	buf[strcspn(buf, "\n")] = '\0';
	return num_parse_u64(buf, UINT64_MAX, ret);
}

uint64_t cgroup_key(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *line = text; line;
	     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		if (strncmp(line, key, len) == 0 && line[len] == ' ')
			return strtoull(line + len + 1, NULL, 10);
	}
	return 0;
}

bool cgroup_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = text; (p = strstr(p, word)); p += len) {
		bool starts = p == text || strchr(" ,\n", p[-1]);

		if (starts && (p[len] == '\0' || strchr(" ,\n", p[len])))
			return true;
	}
	return false;
}

bool cgroup_has_file(const char *dir, const char *file)
{
	char path[FILE_PATH];
	int n = snprintf(path, sizeof(path), "%s/%s", dir, file);

	return n > 0 && (size_t)n < sizeof(path) && access(path, F_OK) == 0;
}

void cgroup_note(struct cgroup_host *h, int result)
{
	if (result < 0 && result != -ENOENT && result != -ENOTDIR && result != -EACCES &&
	    result != -EPERM && result != -EROFS && result != -EOPNOTSUPP)
		h->error = -result;
}

bool cgroup_may(struct cgroup_host *h, const char *path, int mode)
{
	int r = access(path, mode) < 0 ? -errno : 0;

	cgroup_note(h, r);
	return r == 0;
}

void cgroup_why(struct cgroup_host *h, const char *fmt, ...)
{
	size_t used = strlen(h->why);
	va_list ap;

	if (used && used + 3 < sizeof(h->why))
		used += (size_t)snprintf(h->why + used, sizeof(h->why) - used, "; ");
	va_start(ap, fmt);
	vsnprintf(h->why + used, sizeof(h->why) - used, fmt, ap);
	va_end(ap);
}

/* ---- where this process is ---- */

int cgroup_dir_make(struct cgroup *g, const char *base, const char *name, struct pale_err *err)
{
	struct cgroup_dir *d = &g->group[g->ngroups];
	int n = snprintf(d->path, sizeof(d->path), "%s/%s", base, name);

	if (n < 0 || (size_t)n >= sizeof(d->path))
		return err_set(err, PALE_E_HOST, STAGE, ENAMETOOLONG, "control group \"%s\"", base);
	if (mkdir(d->path, 0755) < 0)
		return err_set(err, errno == EACCES || errno == EROFS ? PALE_E_HOST : PALE_E_SYSTEM,
			       STAGE, errno, "making the control group \"%s\"", d->path);
	d->made = true;
	d->join_fd = -1;
	g->ngroups++;
	return 0;
}

int cgroup_limit_failed(const char *dir, const char *file, int r, struct pale_err *err)
{
	return err_set(err, r == -ENOENT || r == -EACCES ? PALE_E_HOST : PALE_E_SYSTEM, STAGE, -r,
		       "setting the limit \"%s/%s\"", dir, file);
}

static void cgroup_free(struct cgroup *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->ngroups; i++)
		close_fd(&g->group[i].join_fd);
	close_fd(&g->clone_fd);
	close_fd(&g->event_fd);
	close_fd(&g->watch_fd);
	close_fd(&g->bus_fd);
	free(g);
}

static struct cgroup *cgroup_new(enum cgroup_kind kind)
{
	struct cgroup *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->kind = kind;
	g->clone_fd = g->event_fd = g->watch_fd = g->bus_fd = -1;
	for (int c = 0; c < CGROUP_V1_COUNT; c++)
		g->of[c] = -1;
	return g;
}

/* The name becomes a directory and a unit: nothing but what an id is made of. */
static bool id_ok(const char *id)
{
	size_t len = strspn(id, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_");

	return len > 0 && len <= 48 && !id[len];
}

/* A process whose end was reported may be a few microseconds from leaving its group (the last step
 * of its exit, on another processor), and nothing reports that in v1: ask again for 100 ms at most.
 * A kernel that is out of memory may have some the next time: what stays here stays for ever. */
static int remove_dir(struct cgroup *g, size_t i, struct pale_err *err)
{
	const char *path = g->group[i].path;

	for (int tries = 0; rmdir(path) < 0 && errno != ENOENT; tries++) {
		if (tries == (errno == EBUSY ? 110 : 20))
			return err_set(err, PALE_E_SYSTEM, STAGE, errno,
				       "removing the control group \"%s\"", path);
		if (errno == EBUSY && tries == 10)
			(void)!cgroup_kill(g, 1000, NULL);
		nanosleep(&(struct timespec){.tv_nsec = tries < 10 ? 50000 : 1000000}, NULL);
	}
	return 0;
}

int cgroup_create(const struct cgroup_host *host, const char *id,
		  const struct cgroup_limits *limits, struct cgroup **ret, struct pale_err *err)
{
	char name[64];
	int r;

	if (!id_ok(id))
		return err_set(err, PALE_E_USAGE, STAGE, 0, "\"%s\" cannot name a control group",
			       QUOTED(id));
	if (host->kind == CGROUP_NONE)
		return err_set(err, PALE_E_HOST, STAGE, 0, "no control group can be made: %s",
			       host->why);
	if ((limits->memory_bytes && !host->memory) || (limits->processes && !host->pids) ||
	    (limits->cpus_milli && !host->cpu))
		return err_set(err, PALE_E_HOST, STAGE, 0,
			       "a control group cannot hold every limit asked for: %s", host->why);
	struct cgroup *g = cgroup_new(host->kind);

	if (!g)
		return err_nomem(err, STAGE);
	g->limits = *limits;
	snprintf(name, sizeof(name), "pale-%s", id);
	if (host->kind == CGROUP_V1)
		r = cgroup_v1_create(host, g, name, err);
	else if (host->kind == CGROUP_V2)
		r = cgroup_v2_create(host, g, name, err);
	else
		r = cgroup_systemd_create(host, g, name, err);
	if (r < 0) {
		for (size_t i = 0; i < g->ngroups; i++) {
			if (g->group[i].made)
				(void)!remove_dir(g, i, NULL);
		}
		cgroup_free(g);
		return r;
	}
	*ret = g;
	return 0;
}

int cgroup_clone_fd(const struct cgroup *g)
{
	return g->clone_fd;
}

size_t cgroup_join_fds(const struct cgroup *g, int fds[static CGROUP_JOIN_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < g->ngroups; i++) {
		if (g->group[i].join_fd >= 0)
			fds[n++] = g->group[i].join_fd;
	}
	return n;
}

int cgroup_join(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (write(fds[i], "0", 1) != 1)
			return -errno;
	}
	return 0;
}

int cgroup_join_beside(const struct cgroup *g)
{
	for (size_t i = 0; i < g->ngroups; i++) {
		if (g->group[i].join_fd < 0 ||
		    (g->kind == CGROUP_V1 && (int)i == g->of[CGROUP_FREEZER]))
			continue;
		if (write(g->group[i].join_fd, "0", 1) != 1)
			return -errno;
	}
	return 0;
}

int cgroup_later_fd(const struct cgroup *g)
{
	return cgroup_holds_later(g) && g->ngroups
		       ? open(g->group[0].path, O_PATH | O_DIRECTORY | O_CLOEXEC)
		       : -1;
}

bool cgroup_holds_later(const struct cgroup *g)
{
	return g->kind != CGROUP_V1;
}

int cgroup_take_beside(const struct cgroup *g, pid_t pid)
{
	int i = g->kind == CGROUP_V1 ? g->of[CGROUP_MEMORY] : 0;

	if (i < 0 || !g->ngroups)
		return -EOPNOTSUPP;
	return cgroup_file_write_u64(g->group[i].path, "cgroup.procs", (uint64_t)pid);
}

int cgroup_attach_begin(struct cgroup *g, pid_t pid, struct pale_err *err)
{
	return g->ops->attach_begin(g, pid, err);
}

int cgroup_attach_end(struct cgroup *g, struct pale_err *err)
{
	return g->ops->attach_end ? g->ops->attach_end(g, err) : 0;
}

int cgroup_attach(struct cgroup *g, pid_t pid, struct pale_err *err)
{
	int r = cgroup_attach_begin(g, pid, err);

	return r < 0 ? r : cgroup_attach_end(g, err);
}

/* ---- watching ---- */

int cgroup_cpu_us(const struct cgroup *g, uint64_t *ret)
{
	char buf[1024];
	ssize_t n;

	if (g->kind == CGROUP_V1) {
		uint64_t ns;
		int r = g->of[CGROUP_CPUACCT] < 0
				? -ENOENT
				: cgroup_file_u64(g->group[g->of[CGROUP_CPUACCT]].path,
						  "cpuacct.usage", &ns);

		if (r == 0)
			*ret = ns / 1000;
		return r;
	}
	n = cgroup_file_read(g->group[0].path, "cpu.stat", buf, sizeof(buf));
	if (n < 0)
		return (int)n;
	*ret = cgroup_key(buf, "usage_usec");
	return 0;
}

int cgroup_usage(struct cgroup *g, struct cgroup_usage *ret, struct pale_err *err)
{
	int r = g->ops->usage(g, ret, err);

	if (r == 0) {
		g->last = *ret;
		g->has_last = true;
		return 0;
	}
	/* systemd removes a scope that is empty; what was seen last is then the answer. */
	if (!g->has_last || g->kind != CGROUP_V2_SYSTEMD)
		return r;
	*ret = g->last;
	/* The count went away with the group, but the slice around it keeps the sum of all that
	 * were ever in it: if that grew since this box began, the kill was this box's, or a
	 * neighbour's at the same time while something else killed this one. */
	if (!ret->oom_kills && g->limits.memory_bytes &&
	    cgroup_systemd_slice_kills(g) > g->slice_kills) {
		ret->oom_kills = 1;
		ret->memory_peak_bytes = g->limits.memory_bytes;
	}
	return 0;
}

void cgroup_remember(struct cgroup *g)
{
	struct cgroup_usage now;

	/* cgroup_usage() keeps them. */
	if (g->kind == CGROUP_V2_SYSTEMD)
		(void)!cgroup_usage(g, &now, NULL);
}

uint64_t cgroup_memory_kept(const struct cgroup *g)
{
	bool v1 = g->kind == CGROUP_V1;
	const char *dir = v1 && g->of[CGROUP_MEMORY] < 0 ? NULL
			  : v1				 ? g->group[g->of[CGROUP_MEMORY]].path
							 : g->group[0].path;
	uint64_t used = 0, pages;
	char buf[8192] = "";

	if (!dir ||
	    cgroup_file_u64(dir, v1 ? "memory.usage_in_bytes" : "memory.current", &used) < 0 ||
	    cgroup_file_read(dir, "memory.stat", buf, sizeof(buf)) < 0)
		return used;
	pages = cgroup_key(buf, v1 ? "total_inactive_file" : "inactive_file") +
		cgroup_key(buf, v1 ? "total_active_file" : "active_file");
	return used > pages ? used - pages : 0;
}

void cgroup_weigh(struct cgroup *g, bool low)
{
	/* What the kernel gives a new group, and an eighth of it. */
	if (g->kind != CGROUP_V1)
		(void)!cgroup_file_write_u64(g->group[0].path, "cpu.weight", low ? 12 : 100);
	else if (g->of[CGROUP_CPU] >= 0)
		(void)!cgroup_file_write_u64(g->group[g->of[CGROUP_CPU]].path, "cpu.shares",
					     low ? 128 : 1024);
}

size_t cgroup_threads(const struct cgroup *g, pid_t *ret, size_t most)
{
	int v1 = g->kind == CGROUP_V1 ? g->of[CGROUP_CPU] : -1;
	char buf[512], *at = buf, *end;
	size_t n = 0;

	if (g->kind == CGROUP_V1 && v1 < 0)
		return 0;
	if (cgroup_file_read(g->group[v1 < 0 ? 0 : v1].path, v1 < 0 ? "cgroup.threads" : "tasks",
			     buf, sizeof(buf)) <= 0)
		return 0;
	while (n < most) {
		long tid = strtol(at, &end, 10);

		/* The last may be cut. */
		if (end == at || *end != '\n')
			break;
		if (tid > 0)
			ret[n++] = (pid_t)tid;
		at = end;
	}
	return n;
}

uint64_t cgroup_throttled_us(const struct cgroup *g)
{
	return g->ops->throttled_us(g);
}

int cgroup_event_fd(struct cgroup *g, short *ret_events)
{
	*ret_events = POLLIN;
	if (g->event_fd < 0 && g->ops->watch)
		g->ops->watch(g);
	return g->event_fd;
}

void cgroup_drain(struct cgroup *g)
{
	uint64_t count;

	if (g->event_fd < 0)
		return;
	if (g->kind == CGROUP_V1)
		(void)!read(g->event_fd, &count, sizeof(count));
	else
		cgroup_v2_drain(g);
	cgroup_remember(g);
}

/* ---- killing ---- */

/* The first max processes of the group; the count, or a negative errno (-ENODEV: it is gone). */
static ssize_t list_processes(const char *dir, pid_t *pids, size_t max)
{
	char buf[8192];
	ssize_t n = cgroup_file_read(dir, "cgroup.procs", buf, sizeof(buf));
	size_t count = 0;

	if (n == -ENOENT || n == -ENODEV)
		return 0;
	if (n < 0)
		return n;
	char *p = buf;

	while (count < max && *p) {
		char *end;
		long pid = strtol(p, &end, 10);

		if (end == p || (*end != '\n' && n == (ssize_t)sizeof(buf) - 1))
			break;
		if (pid > 0 && pid <= INT_MAX)
			pids[count++] = (pid_t)pid;
		p = *end ? end + 1 : end;
	}
	return (ssize_t)count;
}

static bool has_pid(const pid_t *pids, ssize_t n, pid_t pid)
{
	for (ssize_t i = 0; i < n; i++) {
		if (pids[i] == pid)
			return true;
	}
	return false;
}

/* Kills up to a batch and waits for their ends. The number of those found, or a negative errno.
 *
 * A number read from cgroup.procs may belong to somebody else by the time it is used. The pidfd is
 * taken first and the list read again: a process that is still listed and whose pidfd was taken
 * before is the one that is meant, and if it ended in between, the signal goes to nobody. */
static ssize_t kill_batch(const char *dir)
{
	pid_t pids[KILL_BATCH], again[2 * KILL_BATCH];
	struct pollfd ends[KILL_BATCH];
	ssize_t n = list_processes(dir, pids, KILL_BATCH);

	if (n <= 0)
		return n;
	for (ssize_t i = 0; i < n; i++) {
		int fd = (int)syscall(SYS_pidfd_open, pids[i], 0);

		ends[i] = (struct pollfd){.fd = fd, .events = POLLIN};
	}
	ssize_t still = list_processes(dir, again, ARRAY_SIZE(again));

	for (ssize_t i = 0; i < n; i++) {
		if (ends[i].fd >= 0 && has_pid(again, still, pids[i]))
			syscall(SYS_pidfd_send_signal, ends[i].fd, SIGKILL, NULL, 0);
		else
			close_fd(&ends[i].fd);
	}
	/* Not longer than it takes to look again: a process that was in the middle of a fork when
	 * forking was stopped may have left a child that was not in the list. */
	uint64_t until = clock_mono_us() + KILL_ROUND_US;

	for (ssize_t i = 0; i < n; i++) {
		uint64_t now = clock_mono_us();

		if (ends[i].fd >= 0 && now < until)
			(void)!poll(&ends[i], 1, (int)((until - now) / 1000) + 1);
		close_fd(&ends[i].fd);
	}
	return n;
}

void cgroup_kill_once(struct cgroup *g)
{
	const char *dir = g->ngroups ? g->group[0].path : NULL;
	pid_t pids[4 * KILL_BATCH], again[4 * KILL_BATCH];
	int fds[4 * KILL_BATCH];
	ssize_t n = dir ? list_processes(dir, pids, ARRAY_SIZE(pids)) : 0, still;

	/* As in kill_batch(). */
	for (ssize_t i = 0; i < n; i++)
		fds[i] = (int)syscall(SYS_pidfd_open, pids[i], 0);
	still = n > 0 ? list_processes(dir, again, ARRAY_SIZE(again)) : 0;
	for (ssize_t i = 0; i < n; i++) {
		if (fds[i] >= 0 && has_pid(again, still, pids[i]))
			syscall(SYS_pidfd_send_signal, fds[i], SIGKILL, NULL, 0);
		close_fd(&fds[i]);
	}
	cgroup_thaw_killed(g);
}

int cgroup_kill(struct cgroup *g, unsigned timeout_ms, struct pale_err *err)
{
	uint64_t deadline = clock_mono_us() + (uint64_t)timeout_ms * 1000;
	bool stopped = false;

	if (!g->ngroups)
		return 0;
	cgroup_remember(g);
	if (g->frozen)
		cgroup_kill_once(g);
	/* Every process of the box is in every group of it: they have nothing to leave it with. */
	for (;;) {
		pid_t first;
		ssize_t n = list_processes(g->group[0].path, &first, 1);

		if (n == 0)
			return 0;
		if (n > 0 && !stopped) {
			/* New processes inherit the group: first no more of them, then an end to
			 * all. This is why no freezer is needed. */
			g->ops->stop_forks(g);
			stopped = true;
		}
		if (n > 0)
			n = kill_batch(g->group[0].path);
		if (n < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, (int)-n,
				       "listing the processes of \"%s\"", g->group[0].path);
		if (n && clock_mono_us() >= deadline)
			return err_set(err, PALE_E_SYSTEM, STAGE, ETIMEDOUT,
				       "killing the processes of \"%s\"", g->group[0].path);
	}
}

int cgroup_destroy(struct cgroup *g, struct pale_err *err)
{
	int r = 0;

	if (!g)
		return 0;
	for (size_t i = 0; i < g->ngroups; i++)
		if (g->group[i].made && remove_dir(g, i, err) < 0)
			r = -PALE_E_SYSTEM;
	cgroup_free(g);
	return r;
}

/* ---- recovery ---- */

struct recovery {
	char name[64];
	size_t left; /* directories that may still be looked at */
	struct cgroup *g;
	struct cgroup_host looked; /* its error: not all of them could be */
};

/* Looks for a directory of that name below dirfd (whose path is given); owns dirfd. */
static void find_group(struct recovery *rec, int dirfd, const char *path, int depth)
{
	DIR *dir = fdopendir(dirfd);
	struct dirent *e;

	if (!dir) {
		cgroup_note(&rec->looked, -errno);
		close(dirfd);
		return;
	}
	while ((errno = 0, e = readdir(dir)) && rec->left &&
	       rec->g->ngroups < ARRAY_SIZE(rec->g->group)) {
		char below[CGROUP_PATH];

		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		rec->left--;
		int n = snprintf(below, sizeof(below), "%s/%s", path, e->d_name);

		if (n < 0 || (size_t)n >= sizeof(below))
			continue;
		size_t len = strlen(rec->name);
		bool scope = strcmp(e->d_name + strnlen(e->d_name, len), ".scope") == 0;

		if (strncmp(e->d_name, rec->name, len) == 0 && (!e->d_name[len] || scope)) {
			struct cgroup_dir *d = &rec->g->group[rec->g->ngroups++];

			memcpy(d->path, below, (size_t)n + 1);
			d->join_fd = -1;
			/* A scope is removed by systemd alone, which forgets it only if it saw it
			 * empty. */
			d->made = !scope;
			break; /* one a hierarchy */
		}
		int fd = depth ? openat(dirfd, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

		if (depth && fd < 0)
			cgroup_note(&rec->looked, -errno);
		if (fd >= 0)
			find_group(rec, fd, below, depth - 1);
	}
	if (!e)
		cgroup_note(&rec->looked, -errno);
	closedir(dir);
}

static void recover_stop_nothing(struct cgroup *g)
{
	for (size_t i = 0; i < g->ngroups; i++) {
		cgroup_file_write(g->group[i].path, "cgroup.kill", "1");
		cgroup_file_write(g->group[i].path, "pids.max", "0");
	}
}

int cgroup_recover(const struct cgroup_host *host, const char *id, struct pale_err *err)
{
	static const struct cgroup_ops ops = {.stop_forks = recover_stop_nothing};
	const struct cgroup_source src = {
		.self_cgroup = "/proc/self/cgroup",
		.self_mountinfo = "/proc/self/mountinfo",
	};
	_cleanup_free_ struct cgroup_places *places = malloc(sizeof(*places));

	if (!id_ok(id))
		return err_set(err, PALE_E_USAGE, STAGE, 0, "\"%s\" cannot name a control group",
			       QUOTED(id));
	if (!places)
		return err_nomem(err, STAGE);
	if (host->kind == CGROUP_NONE)
		return 0;
	struct recovery rec = {.left = RECOVER_DIRS, .g = cgroup_new(CGROUP_V1)};
	int r = cgroup_places_read(&src, places);

	cgroup_note(&rec.looked, r);

	if (!rec.g)
		return err_nomem(err, STAGE);
	rec.g->ops = &ops;
	snprintf(rec.name, sizeof(rec.name), "pale-%s", id);
	/* The lost supervisor may have been in another group than we are (another login): the whole
	 * hierarchy is looked through, which is rare enough. */
	for (int c = -1; c < CGROUP_V1_COUNT; c++) {
		struct cgroup_place *p = c < 0 ? &places->v2 : &places->v1[c];

		if (!p->dir[0] || (c < 0) != (host->kind != CGROUP_V1))
			continue;
		p->dir[p->mount_len] = '\0';
		int fd = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd < 0)
			cgroup_note(&rec.looked, -errno);
		if (fd >= 0)
			find_group(&rec, fd, p->dir, 16);
	}
	r = 0;
	size_t found = rec.g->ngroups;

	/* A frozen one did not die with its supervisor. */
	for (size_t i = 0; i < found; i++) {
		struct cgroup one = {.kind = CGROUP_V1, .ngroups = 1, .group = {rec.g->group[i]}};

		cgroup_kill_once(&one);
	}
	for (size_t i = 0; i < found; i++)
		cgroup_thaw_dir(rec.g->group[i].path);
	/* Not every group need exist in every hierarchy; each is emptied for itself. */

	for (size_t i = 0; i < found && r == 0; i++) {
		struct cgroup_dir first = rec.g->group[0];

		rec.g->group[0] = rec.g->group[i];
		r = cgroup_kill(rec.g, 5000, err);
		rec.g->group[i] = rec.g->group[0];
		rec.g->group[0] = i ? first : rec.g->group[0];
	}
	if (r < 0) {
		cgroup_free(rec.g);
		return r;
	}
	r = cgroup_destroy(rec.g, err);
	/* Once its run is closed nobody looks for it again. */
	if (r == 0 && rec.looked.error)
		r = err_set(err, PALE_E_SYSTEM, STAGE, rec.looked.error,
			    "looking for the control groups of run %s", id);
	return r;
}
