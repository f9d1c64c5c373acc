/* Accounting without a control group: see usage.h (proc(5)).
 *
 * Runs in the supervisor, outside the box, with the caller's privileges; every number read is of
 * the box's making, every name (a process's) is skipped. Processes are found as descendants of the
 * box's first process through /proc/PID/task/TID/children: nobody leaves that tree, for orphans go
 * to the first process of their pid namespace, whatever they double-forked or setsid()ed before. A
 * command that is a zygote's fork is the root of a second such tree: its parent is outside.
 *
 * How close this is to a control group:
 *  - Processor time is exact to the tick while processes live and once they were waited for. The
 * time of a child that nobody waits for (SIGCHLD ignored) is kept as last seen, so one that lives
 * shorter than a sampling interval is not counted.
 *  - Memory is anonymous pages plus shared memory plus the pages of the writable file systems. Page
 *    tables, kernel stacks, pipe and socket buffers are not in it, nor is the page cache (which the
 *    kernel can take back).
 *  - What grows between two samples is seen late. The interval follows the room that is left, so
 * that a box that faults pages in as fast as this machine can is over by the growth of a few
 *    milliseconds; RLIMIT_DATA (confine/rlimits.c) bounds each process meanwhile, and the process
 *    limit how many there are.
 *
 * A box in which nothing has run since the last sample is as it was: what a process has run, to the
 * nanosecond, costs a read of a file that is kept open. So hundreds of idle boxes can be watched as
 * closely as one that works. */
#include "supervise/usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <time.h>

#include "base/buf.h"
#include "base/str.h"

#define STAGE	      "supervise"
#define TASKS_MAX     4096 /* looked at in one sample; more is over any sane limit */
#define FDS_MAX	      4096 /* descriptors looked at for unmapped shared memory */
#define SHM_TEXT_MAX  (1u << 20)
#define MEMFDS_MAX    256
#define LOOK_AT_FILES 16 /* every so many samples */
#define ASLEEP_MAX    32 /* processes; a descriptor each */
#define MIN_MS	      4
#define MAX_MS	      50
#define COST_SHARE    50 /* at most 1/50 of a processor goes into sampling, */
#define COST_DEAR     8	 /* or 1/8 while the limit is so near that shares must be known */
/* What one processor can fault in at most, with huge pages; measured 4-9 GB/s. */
#define GROWTH_PER_MS (8u << 20)

struct task { /* a process, as last seen */
	pid_t pid;
	uint64_t start; /* with pid, its identity */
	uint64_t cpu_us;
	unsigned threads;
	uint64_t anon_bytes, shmem_bytes; /* resident, by statm: shmem includes files */
	bool seen;
	int ran_fd; /* its schedstat; 0: none yet */
	uint64_t ran_ns;
};

struct usage {
	pid_t init, command;
	uint64_t command_start; /* when it was first seen: its number may become another's */
	struct usage_budget budget;
	int proc; /* descriptor of /proc */
	long tick_us;
	long page;
	uint64_t shmem_base; /* of the whole host when the box began */
	unsigned samples;
	uint64_t cpu_lost_us; /* of ended processes whose time nobody inherited */
	uint64_t cpu_live_us; /* the sum at the last sample */
	struct usage_now now;
	uint64_t tmpfs_bytes; /* at the last sample */
	size_t ntasks, size;
	struct task *tasks;
	pid_t queue[TASKS_MAX]; /* processes yet to be looked at, in walk() */
};

static uint64_t host_shmem(void)
{
	struct sysinfo si;

	return sysinfo(&si) == 0 ? (uint64_t)si.sharedram * si.mem_unit : 0;
}

int usage_new(pid_t init, pid_t command, const struct usage_budget *budget, struct usage **ret,
	      struct pale_err *err)
{
	struct usage *u = calloc(1, sizeof(*u));

	if (!u)
		return err_nomem(err, STAGE);
	u->init = init;
	u->command = command;
	u->budget = *budget;
	if (!u->budget.cpus)
		u->budget.cpus = 1;
	u->tick_us = 1000000 / sysconf(_SC_CLK_TCK);
	u->page = sysconf(_SC_PAGESIZE);
	u->shmem_base = host_shmem();
	u->proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (u->proc < 0) {
		int sys = errno;

		free(u);
		return err_set(err, PALE_E_SYSTEM, STAGE, sys, "opening /proc");
	}
	*ret = u;
	return 0;
}

static void forget_task(const struct task *t)
{
	if (t->ran_fd > 0)
		close(t->ran_fd);
}

void usage_free(struct usage *u)
{
	if (!u)
		return;
	close_fd(&u->proc);
	for (size_t i = 0; i < u->ntasks; i++)
		forget_task(&u->tasks[i]);
	free(u->tasks);
	free(u);
}

static ssize_t read_at(int dir, const char *path, char *buf, size_t size)
{
	_cleanup_close_ int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	ssize_t n = read(fd, buf, size - 1);

	if (n < 0)
		return -errno;
	buf[n] = '\0';
	return n;
}

static DIR *open_dir_of(const struct usage *u, pid_t pid, const char *name)
{
	char path[32];

	snprintf(path, sizeof(path), "%d/%s", (int)pid, name);
	int fd = openat(u->proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		close_fd(&fd);
	return dir;
}

/* ---- one process ---- */

/* /proc/PID/stat: time of itself and of the children that it waited for, threads, start time. */
static int read_stat(const struct usage *u, struct task *t)
{
	char path[32], buf[1024];

	snprintf(path, sizeof(path), "%d/stat", (int)t->pid);
	ssize_t n = read_at(u->proc, path, buf, sizeof(buf));

	if (n < 0)
		return (int)n;
	/* The name may hold anything, also ") 1 2": what follows starts after the last parenthesis.
	 */
	char *p = strrchr(buf, ')');
	uint64_t field[23] = {0}; /* by their numbers in proc(5), from 3 (state) on */

	if (!p)
		return -EBADMSG;
	p += 2;
	if (*p && p[1])
		p += 2;
	for (int i = 4; i < 23; i++)
		field[i] = strtoull(p, &p, 10);
	t->cpu_us = (field[14] + field[15] + field[16] + field[17]) * (uint64_t)u->tick_us;
	t->threads = field[20] > UINT_MAX ? UINT_MAX : (unsigned)field[20];
	t->start = field[22];
	return 0;
}

static void read_statm(const struct usage *u, struct task *t)
{
	char path[32], buf[128], *p = buf;

	snprintf(path, sizeof(path), "%d/statm", (int)t->pid);
	if (read_at(u->proc, path, buf, sizeof(buf)) < 0)
		return;
	strtoull(p, &p, 10); /* size */
	uint64_t resident = strtoull(p, &p, 10);
	uint64_t shared = strtoull(p, &p, 10); /* files and shared memory */

	t->anon_bytes = resident > shared ? (resident - shared) * (uint64_t)u->page : 0;
	t->shmem_bytes = shared * (uint64_t)u->page;
}

/* ---- has anything run? ---- */

static int open_ran(const struct usage *u, pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "%d/schedstat", (int)pid);
	/* Not among the streams, where 0 would be one that is good. */
	int fd = openat(u->proc, path, O_RDONLY | O_CLOEXEC);

	return fd > 0 ? fd : -1;
}

/* What its first thread has run, in nanoseconds; 0: unknown, as where it has not run yet. */
static uint64_t read_ran(const struct task *t)
{
	char text[80];
	ssize_t n = t->ran_fd > 0 ? pread(t->ran_fd, text, sizeof(text) - 1, 0) : -1;

	if (n <= 0)
		return 0;
	text[n] = '\0';
	return strtoull(text, NULL, 10);
}

/* Nobody has run, so nobody has started a process, or a thread, or has ended. Who runs just now may
 * show it a tick of the clock late. */
static bool asleep(const struct usage *u)
{
	for (size_t i = 0; i < u->ntasks; i++) {
		const struct task *t = &u->tasks[i];

		if (t->threads != 1 || !t->ran_ns || read_ran(t) != t->ran_ns)
			return false;
	}
	return u->ntasks > 0;
}

/* ---- the tree ---- */

static struct task *find_task(struct usage *u, pid_t pid)
{
	for (size_t i = 0; i < u->ntasks; i++) {
		if (u->tasks[i].pid == pid)
			return &u->tasks[i];
	}
	return NULL;
}

static struct task *add_task(struct usage *u, pid_t pid)
{
	if (u->ntasks == u->size) {
		size_t size = u->size ? 2 * u->size : 32;
		struct task *more =
			size <= TASKS_MAX ? realloc(u->tasks, size * sizeof(*more)) : NULL;

		if (!more)
			return NULL;
		u->tasks = more;
		u->size = size;
	}
	u->tasks[u->ntasks] = (struct task){.pid = pid};
	return &u->tasks[u->ntasks++];
}

/* Looks at one process; false if it is gone. */
static bool visit(struct usage *u, pid_t pid)
{
	struct task *t = find_task(u, pid), fresh = {.pid = pid};

	if (t && t->seen)
		return true;
	if (read_stat(u, &fresh) < 0)
		return false;
	/* The number was given to another process: the one before has ended, which ended() must
	 * learn. */
	if (t && t->start != fresh.start)
		t->pid = -1;
	if (!t || t->pid < 0)
		t = add_task(u, pid);
	if (!t)
		return false;
	fresh.seen = true;
	fresh.ran_fd = t->ran_fd > 0 ? t->ran_fd : u->ntasks <= ASLEEP_MAX ? open_ran(u, pid) : -1;
	/* Before the rest is read: what it does from now on shows. */
	fresh.ran_ns = read_ran(&fresh);
	if (u->budget.memory_bytes)
		read_statm(u, &fresh);
	*t = fresh;
	return true;
}

static void children_of(struct usage *u, pid_t pid, pid_t tid, pid_t *queue, size_t *nqueue)
{
	char path[64], buf[4096];

	snprintf(path, sizeof(path), "%d/task/%d/children", (int)pid, (int)tid);
	_cleanup_close_ int fd = openat(u->proc, path, O_RDONLY | O_CLOEXEC);
	size_t kept = 0;
	ssize_t n;

	/* A list longer than the buffer comes in pieces; a number that was cut is carried over. */
	while (fd >= 0 && (n = read(fd, buf + kept, sizeof(buf) - 1 - kept)) > 0) {
		char *p = buf, *space;

		buf[kept + (size_t)n] = '\0';
		while ((space = strchr(p, ' '))) {
			long child = strtol(p, NULL, 10);

			if (child > 0 && child <= INT_MAX && *nqueue < TASKS_MAX)
				queue[(*nqueue)++] = (pid_t)child;
			p = space + 1;
		}
		kept = strlen(p);
		memmove(buf, p, kept);
		if (kept >= 16)
			return;
	}
}

static void children_of_threads(struct usage *u, pid_t pid, pid_t *queue, size_t *nqueue)
{
	DIR *dir = open_dir_of(u, pid, "task");
	struct dirent *e;

	if (!dir)
		return;
	while ((e = readdir(dir))) {
		long tid = strtol(e->d_name, NULL, 10);

		if (tid > 0 && tid <= INT_MAX)
			children_of(u, pid, (pid_t)tid, queue, nqueue);
	}
	closedir(dir);
}

/* Is it there still, and itself? */
static bool has_command(struct usage *u)
{
	struct task t = {.pid = u->command};

	if (!u->command || read_stat(u, &t) < 0)
		return false;
	if (!u->command_start)
		u->command_start = t.start;
	return t.start == u->command_start;
}

/* Visits every process of the box. False if the first one is gone. */
static bool walk(struct usage *u)
{
	pid_t *queue = u->queue;
	size_t nqueue = 0;

	for (size_t i = 0; i < u->ntasks; i++)
		u->tasks[i].seen = false;
	queue[nqueue++] = u->init;
	if (has_command(u))
		queue[nqueue++] = u->command;
	for (size_t i = 0; i < nqueue; i++) {
		pid_t pid = queue[i];

		if (!visit(u, pid)) {
			if (i == 0)
				return false;
			continue;
		}
		struct task *t = find_task(u, pid);

		if (t && t->threads > 1)
			children_of_threads(u, pid, queue, &nqueue);
		else
			children_of(u, pid, pid, queue, &nqueue);
	}
	return true;
}

/* Drops what has ended, and returns the time that those processes had used when last seen. The
 * kernel may leave a process out of a list that changes while it is read, so that one that was not
 * met is asked for by its number first. */
static uint64_t ended(struct usage *u)
{
	uint64_t gone = 0;
	size_t kept = 0;

	for (size_t i = 0; i < u->ntasks; i++) {
		struct task *t = &u->tasks[i], fresh = {.pid = t->pid};

		if (!t->seen && t->pid > 0 && read_stat(u, &fresh) == 0 &&
		    fresh.start == t->start) {
			t->cpu_us = fresh.cpu_us;
			t->threads = fresh.threads;
			t->seen = true;
		}
		if (t->seen) {
			u->tasks[kept++] = *t;
		} else {
			gone += t->cpu_us;
			forget_task(t);
		}
	}
	u->ntasks = kept;
	return gone;
}

/* ---- memory ---- */

/* Proportional shares: what forked children share with their parent counts once. False: they cannot
 * be read. A process that has ended since it was found has no memory any more. */
static bool proportional(const struct usage *u, pid_t pid, uint64_t *anon, uint64_t *shmem)
{
	char path[32], buf[2048];

	snprintf(path, sizeof(path), "%d/smaps_rollup", (int)pid);
	ssize_t n = read_at(u->proc, path, buf, sizeof(buf));

	if (n == 0 || n == -ENOENT || n == -ESRCH)
		return true;
	if (n < 0)
		return false;
	const char *a = strstr(buf, "\nPss_Anon:"), *s = strstr(buf, "\nPss_Shmem:");
	const char *w = strstr(buf, "\nSwapPss:");

	if (!a || !s)
		return false;
	*anon += strtoull(a + strlen("\nPss_Anon:"), NULL, 10) * 1024;
	*anon += w ? strtoull(w + strlen("\nSwapPss:"), NULL, 10) * 1024 : 0;
	*shmem += strtoull(s + strlen("\nPss_Shmem:"), NULL, 10) * 1024;
	return true;
}

static uint64_t tmpfs_used(const struct usage *u)
{
	uint64_t used = 0;

	for (size_t i = 0; i < u->budget.ntmpfs; i++) {
		struct statvfs st;

		if (fstatvfs(u->budget.tmpfs[i], &st) == 0)
			used += (st.f_blocks - st.f_bfree) * st.f_frsize;
	}
	return used;
}

/* System V shared memory, which stays without a process that has it. The last two columns of each
 * line are what of it is in memory and what is swapped out. */
static uint64_t shm_used(const struct usage *u)
{
	_cleanup_buf_ struct buf text = BUF_INIT(SHM_TEXT_MAX);
	uint64_t used = 0;
	char *line;

	if (u->budget.shm <= 0 || lseek(u->budget.shm, 0, SEEK_SET) < 0)
		return 0;
	(void)!buf_read_fd(&text, u->budget.shm);
	line = text.data ? strchr(text.data, '\n') : NULL; /* the first holds the names */
	for (char *end; line && (end = strchr(line + 1, '\n')); line = end) {
		char *at = end;

		for (int i = 0; i < 2; i++) {
			while (at > line && at[-1] == ' ')
				at--;
			while (at > line && at[-1] >= '0' && at[-1] <= '9')
				at--;
			used += strtoull(at, NULL, 10);
		}
	}
	return used;
}

struct memfds {
	bool more; /* there is some that cannot be seen: too many files, or ones on their way in a
		      message */
	size_t n, looked;
	uint64_t bytes;
	struct {
		dev_t dev;
		ino_t ino;
	} known[MEMFDS_MAX];
};

/* Whether messages wait in a Unix socket that carry descriptors: their files are nobody's then. */
static bool holds_descriptors(const struct usage *u, pid_t pid, const char *fd)
{
	char path[320], text[1024];

	snprintf(path, sizeof(path), "%d/fdinfo/%s", (int)pid, fd);
	if (read_at(u->proc, path, text, sizeof(text)) < 0)
		return false;
	const char *count = strstr(text, "\nscm_fds:");

	return count && strtoull(count + strlen("\nscm_fds:"), NULL, 10) > 0;
}

/* Memory files that a process holds open: not in any file system of the box, and not resident in a
 * process that only writes to them. */
static void memfds_of(const struct usage *u, pid_t pid, struct memfds *m)
{
	char link[64];
	DIR *dir = open_dir_of(u, pid, "fd");
	struct dirent *e;

	if (!dir)
		return;
	while (m->looked < FDS_MAX && m->n < MEMFDS_MAX && (e = readdir(dir))) {
		struct stat st;
		ssize_t len = readlinkat(dirfd(dir), e->d_name, link, sizeof(link) - 1);

		m->looked++;
		if (len < 0)
			continue;
		link[len] = '\0';
		if (str_starts(link, "socket:") && !m->more)
			m->more = holds_descriptors(u, pid, e->d_name);
		if (!str_starts(link, "/memfd:") && !str_starts(link, "/dev/zero (deleted)") &&
		    !str_starts(link, "/SYSV"))
			continue;
		if (fstatat(dirfd(dir), e->d_name, &st, 0) < 0)
			continue;
		bool known = false;

		for (size_t i = 0; i < m->n && !known; i++)
			known = m->known[i].dev == st.st_dev && m->known[i].ino == st.st_ino;
		if (known)
			continue;
		m->known[m->n].dev = st.st_dev;
		m->known[m->n++].ino = st.st_ino;
		m->bytes += (uint64_t)st.st_blocks * 512;
	}
	m->more |= m->looked == FDS_MAX || m->n == MEMFDS_MAX;
	closedir(dir);
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Cheap and never too low first; proportional shares, which cost 0.1 to 6 ms a process, only where
 * that would be over the limit. *ret_dear: they were needed. */
static uint64_t measure_memory(struct usage *u, bool *ret_dear)
{
	uint64_t limit = u->budget.memory_bytes, files = tmpfs_used(u) + shm_used(u);
	uint64_t anon = 0, shared = 0, largest = 0;

	for (size_t i = 0; i < u->ntasks; i++) {
		anon += u->tasks[i].anon_bytes;
		shared += u->tasks[i].shmem_bytes;
		largest = max_u64(largest, u->tasks[i].anon_bytes);
	}
	/* All shared memory of the host grew by no more than this: if that is little, there is no
	 * need to look for the box's part of it. What is mapped from files on disk is not shared
	 * memory, and only this tells them apart without asking each process. */
	uint64_t now = host_shmem();
	struct memfds m = {0};

	/* What others gave back must not hide what the box takes: the least so far is the base, and
	 * now and then its files are looked at whatever the host's sum says. */
	u->shmem_base = min_u64(u->shmem_base, now);
	if (u->samples++ % LOOK_AT_FILES == LOOK_AT_FILES - 1) {
		for (size_t i = 0; i < u->ntasks; i++)
			memfds_of(u, u->tasks[i].pid, &m);
	}
	uint64_t grown = max_u64(now - u->shmem_base, files + m.bytes);

	if (anon + max_u64(files, grown) <= limit)
		return anon + files + min_u64(shared, grown > files ? grown - files : 0);
	/* One process that is over it by itself shares that with nobody who matters. */
	if (largest > limit && anon - largest < limit / 16)
		return anon + files;

	uint64_t pss_anon = 0, pss_shmem = 0;

	*ret_dear = true;
	for (size_t i = 0; i < u->ntasks; i++) {
		if (!proportional(u, u->tasks[i].pid, &pss_anon, &pss_shmem))
			pss_anon += u->tasks[i].anon_bytes;
		if (grown > limit / 64)
			memfds_of(u, u->tasks[i].pid, &m);
	}
	/* What is in files may be mapped as well, and then is in both sums: the truth lies between
	 * the larger of the two and both together, and not above what the host's shared memory grew
	 * by. */
	uint64_t in_files = files + m.bytes, larger = max_u64(in_files, pss_shmem);

	/* Where the box hides some, all growth is taken to be its own. */
	return pss_anon + max_u64(larger, m.more ? grown : min_u64(in_files + pss_shmem, grown));
}

/* ---- sampling ---- */

/* Milliseconds until the budget could be used up, a little less than that. */
static uint64_t room_ms(uint64_t used, uint64_t limit, uint64_t per_ms)
{
	return used >= limit ? 0 : (limit - used) / per_ms;
}

static unsigned next_ms(const struct usage *u, const struct usage_now *now, uint64_t pause_ms)
{
	uint64_t ms = MAX_MS;

	if (u->budget.memory_bytes)
		ms = min_u64(ms, room_ms(now->memory_bytes, u->budget.memory_bytes,
					 (uint64_t)GROWTH_PER_MS * u->budget.cpus));
	else if (u->budget.cpu_us)
		ms = 1000; /* processor time cannot run ahead of the clock */
	if (u->budget.cpu_us)
		ms = min_u64(ms, room_ms(now->cpu_us, u->budget.cpu_us,
					 UINT64_C(1000) * u->budget.cpus));
	/* Not so often that sampling itself is felt. */
	return (unsigned)max_u64(max_u64(ms, MIN_MS), pause_ms);
}

unsigned usage_first_ms(const struct usage *u)
{
	return next_ms(u, &(struct usage_now){0}, 0);
}

int usage_sample(struct usage *u, struct usage_now *ret, struct pale_err *err)
{
	struct timespec before, after;
	uint64_t live = 0, threads = 0;
	bool dear = false;

	/* Its files can be written by others who are let in, and are. */
	if (asleep(u) && tmpfs_used(u) == u->tmpfs_bytes) {
		*ret = u->now;
		ret->next_sample_ms = next_ms(u, &u->now, 0);
		return 0;
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
	u->tmpfs_bytes = tmpfs_used(u);
	if (!walk(u))
		return err_set(err, PALE_E_NOTFOUND, STAGE, 0, "the box's first process has ended");
	uint64_t gone = ended(u);

	for (size_t i = 0; i < u->ntasks; i++) {
		live += u->tasks[i].cpu_us;
		threads += u->tasks[i].threads;
	}
	/* The time of what has ended is in its parent's sum by now, unless nobody waited for it:
	 * then the sum went down, and what is missing is kept. */
	if (live < u->cpu_live_us)
		u->cpu_lost_us += min_u64(gone, u->cpu_live_us - live);
	u->cpu_live_us = live;

	struct usage_now *now = &u->now;

	now->cpu_us = max_u64(now->cpu_us, live + u->cpu_lost_us);
	now->processes = u->ntasks;
	now->threads = threads;
	now->processes_peak = max_u64(now->processes_peak, threads);
	if (u->budget.memory_bytes) {
		now->memory_bytes = measure_memory(u, &dear);
		/* Shares are read one process after the other. When many that share are ending
		 * meanwhile, each of those read later has a larger part of the same pages, and the
		 * sum is too high. What is really over is so at a second look, too. */
		if (dear && now->memory_bytes > u->budget.memory_bytes && walk(u)) {
			(void)ended(u);
			now->memory_bytes = min_u64(now->memory_bytes, measure_memory(u, &dear));
		}
		now->memory_peak_bytes = max_u64(now->memory_peak_bytes, now->memory_bytes);
	}
	now->cpu_over = u->budget.cpu_us && now->cpu_us >= u->budget.cpu_us;
	now->memory_over = u->budget.memory_bytes && now->memory_bytes > u->budget.memory_bytes;
	now->processes_over = u->budget.processes && threads > u->budget.processes;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
	int64_t cost =
		(after.tv_sec - before.tv_sec) * 1000000 + (after.tv_nsec - before.tv_nsec) / 1000;

	now->next_sample_ms = next_ms(
		u, now, (uint64_t)(cost > 0 ? cost : 0) * (dear ? COST_DEAR : COST_SHARE) / 1000);
	*ret = *now;
	return 0;
}
