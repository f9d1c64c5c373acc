/* The processes below the host, by /proc.
 *
 * The host is the reaper of what is orphaned below it, so that everything user code has started is
 * found here, whoever its parent was. Numbers and times are the kernel's; names of programs, which
 * are the user's, are skipped over. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host.h"

#define PROCESSES_MAX 65536
#define KILL_MS	      3000

struct process {
	pid_t pid, parent;
	uint64_t started;
	bool ended; /* or its first thread has: others may go on, and have its children */
	bool chosen;
};

uint64_t tree_now_ticks(void)
{
	struct timespec t;
	uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * hz + (uint64_t)t.tv_nsec * hz / 1000000000;
}

static bool read_process(pid_t pid, struct process *ret)
{
	char path[64], text[1024], *at, state;
	unsigned long long started;
	int fd, parent;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	at = strrchr(text, ')');
	if (!at || sscanf(at + 1,
			  " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
			  "%*d %llu",
			  &state, &parent, &started) != 3)
		return false;
	*ret = (struct process){pid, parent, started, state == 'Z' || state == 'X', false};
	return true;
}

/* All there are: freed by the caller. */
static struct process *read_all(size_t *ret_n)
{
	DIR *d = opendir("/proc");
	struct process *all = NULL;
	size_t n = 0, size = 0;
	struct dirent *e;

	while (d && (e = readdir(d)) && n < PROCESSES_MAX) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

		if (pid <= 0)
			continue;
		if (n == size) {
			struct process *bigger = realloc(all, (size + 64) * sizeof(*all));

			if (!bigger)
				break;
			all = bigger;
			size += 64;
		}
		if (read_process(pid, &all[n]))
			n++;
	}
	if (d)
		closedir(d);
	*ret_n = n;
	return all;
}

/* Chosen are those that choose() takes among root's children, and what descends from them. */
static struct process *choose_below(struct host *h, pid_t root, size_t *ret_n,
				    bool (*choose)(struct host *h, const struct process *p,
						   void *arg),
				    void *arg)
{
	size_t n;
	struct process *all = read_all(&n);
	bool more = true;

	for (size_t i = 0; i < n; i++)
		all[i].chosen = all[i].parent == root && choose(h, &all[i], arg);
	while (more) {
		more = false;
		for (size_t i = 0; i < n; i++)
			for (size_t k = 0; !all[i].chosen && k < n; k++)
				if (all[k].chosen && all[i].parent == all[k].pid)
					more = all[i].chosen = true;
	}
	*ret_n = n;
	return all;
}

void tree_note_children(struct host *h)
{
	char path[64], text[4096], *at = text, *end;
	ssize_t n;
	int fd;

	h->nbefore = 0;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)h->interpreter,
		 (int)h->interpreter);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = '\0';
	for (;;) {
		long pid = strtol(at, &end, 10);

		if (end == at || h->nbefore == sizeof(h->before) / sizeof(*h->before))
			return;
		h->before[h->nbefore++] = (pid_t)pid;
		at = end;
	}
}

struct recent {
	uint64_t since;
	bool foreground;
};

static bool is_recent(struct host *h, const struct process *p, void *arg)
{
	const struct recent *r = arg;

	for (size_t i = 0; i < h->nbefore; i++)
		if (h->before[i] == p->pid)
			return false;
	return p->started >= r->since && (!r->foreground || h->kind->in_foreground(h, p->pid));
}

void tree_signal(struct host *h, uint64_t since_ticks, bool foreground, int signal_number)
{
	struct recent r = {since_ticks, foreground};
	size_t n;
	struct process *all = choose_below(h, h->interpreter, &n, is_recent, &r);

	for (size_t i = 0; i < n; i++)
		if (all[i].chosen)
			kill(all[i].pid, signal_number);
	free(all);
}

static bool is_left(struct host *h, const struct process *p, void *arg)
{
	(void)arg;
	return p->pid != h->lever[0] && p->pid != h->lever[1] && p->pid != h->interpreter;
}

static bool is_ours(struct host *h, const struct process *p, void *arg)
{
	(void)arg;
	return p->pid != h->lever[0] && p->pid != h->lever[1];
}

unsigned tree_left(struct host *h)
{
	size_t n;
	struct process *all = choose_below(h, getpid(), &n, is_left, NULL);
	unsigned left = 0;

	for (size_t i = 0; i < n; i++)
		left += all[i].chosen && !all[i].ended;
	free(all);
	return left;
}

void tree_kill_all(struct host *h)
{
	uint64_t until = now_ms() + KILL_MS;
	struct timespec nap = {0, 200000};
	unsigned empty = 0;

	/* What is killed may be forking, and one that ends by itself may just have left its
	 * children to us: until two looks find nothing. */
	while (empty < 2) {
		size_t n, chosen = 0;
		struct process *all = choose_below(h, getpid(), &n, is_ours, NULL);

		for (size_t i = 0; i < n; i++)
			if (all[i].chosen && kill(all[i].pid, SIGKILL) == 0)
				chosen++;
		free(all);
		empty = chosen ? 0 : empty + 1;
		if (now_ms() > until)
			return;
		nanosleep(&nap, NULL);
		/* Not the levers: main.c hears of them. */
		for (pid_t pid; (pid = waitpid(-1, NULL, WNOHANG)) > 0;) {
			if (pid == h->interpreter)
				h->interpreter = 0;
			for (unsigned i = 0; i < 2; i++)
				if (pid == h->lever[i])
					h->lever[i] = 0;
		}
	}
}
