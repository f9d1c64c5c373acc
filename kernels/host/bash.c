/* Bash: an interactive one without a terminal, whose top level reads command lines of ours.
 *
 * Interactive, because a SIGINT then ends what runs, however deep it is, and not the shell. At its
 * top level descriptors 0 and 1 are pipes of ours and 2 leads nowhere; an execution has its own for
 * as long as it takes, while bash keeps the others close-on-exec. The code is in a memfd, which
 * `source` reads as a whole: so quotes and here-documents that do not end, or a SIGINT, cannot make
 * a part of the code, or of our lines, be taken for something else. Two lines make an execution:
 *
 *     builtin echo B; builtin . CODE <&in >&out 2>&err && builtin echo E 0 || builtin echo E $?
 *     builtin echo D $?
 *
 * B: it has begun, and may be interrupted; E: its status; D, without E: it was given up (a SIGINT).
 * `builtin .`, because of what bash ignores a failure (here: left of &&) also `set -e` in it is
 * ignored, but for this form. After a SIGINT another line, S, makes sure that the signal is past.
 * It may cut our lines: there is no quote in them that would swallow the next one.
 *
 * Hostile: what comes on the pipe of the reports, which user code can write to (a DEBUG trap does).
 * It is searched for words with a random mark; what it can fake is how its own execution ended. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "host.h"

#define LINE_MAX_BYTES	 65536
#define ANSWER_MAX_BYTES (4u << 20)
#define SYNC_MS		 15u
#define SMALL_RSS_BYTES	 (64u << 20)

struct bash {
	int code_fd, status_fd, stdin_fd;
	char mark[24];
	char line[LINE_MAX_BYTES];
	size_t line_len;
	unsigned in, out, err; /* descriptors in bash */
	int last_status;

	/* The execution. */
	bool begun, has_status, past, cut;
	int status;
	unsigned sync, synced;

	/* COMPLETE, INSPECT. */
	struct words words;
	char *answer;
	size_t answer_len;
};

static struct bash *own(struct host *h)
{
	static struct bash bash = {.code_fd = -1};
	struct bash *b = &bash;

	if (b->code_fd < 0) {
		b->code_fd = memfd_create("code", MFD_CLOEXEC);
		b->status_fd = memfd_create("status", MFD_CLOEXEC);
		/* Marked by O_APPEND, which means nothing for reading: a job in the background has
		 * another /dev/null, of bash's. */
		b->stdin_fd = open("/dev/null", O_RDONLY | O_APPEND | O_CLOEXEC);
		if (b->code_fd < 0 || b->status_fd < 0 || b->stdin_fd < 0)
			die("cannot set up", errno);
		h->own = b;
	}
	return b;
}

static void say(struct host *h, const char *line)
{
	host_queue(h, line, strlen(line));
}

/* ---- starting ---- */

static void bash_exec(struct host *h, int commands, int reports)
{
	int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int fds[] = {commands, reports, nowhere, own(h)->stdin_fd, 1, 2};
	static const int places[] = {0, 1, 2, 5, 6, 7};
	char *argv[] = {(char *)(uintptr_t) "bash",	   (char *)(uintptr_t) "--noprofile",
			(char *)(uintptr_t) "--rcfile",	   h->argv[3],
			(char *)(uintptr_t) "--noediting", (char *)(uintptr_t) "+m",
			(char *)(uintptr_t) "-i",	   NULL};

	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		fds[i] = fcntl(fds[i], F_DUPFD, 64);
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (dup2(fds[i], places[i]) < 0)
			return;
	syscall(SYS_close_range, 3U, 4U, 0U);
	syscall(SYS_close_range, 8U, UINT_MAX, 0U);
	execv(h->argv[2], argv);
}

/* The first line, once the start-up file has run. */
static void greet(struct host *h)
{
	struct bash *b = own(h);
	unsigned char random[8];
	char line[160];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		die("cannot get random bytes", errno);
	b->mark[0] = '@';
	for (size_t i = 0; i < sizeof(random); i++)
		sprintf(b->mark + 1 + 2 * i, "%02x", random[i]);
	b->line_len = 0;
	b->last_status = 0;
	snprintf(line, sizeof(line),
		 "\\builtin echo %s R $pale_streams $BASH_VERSION\n\\builtin unset pale_streams\n",
		 b->mark);
	say(h, line);
}

/* ---- executions ---- */

static void arm(struct host *h)
{
	h->page->target = -h->interpreter;
	h->page->armed = h->running;
}

static void give_back_memory(struct bash *b)
{
	(void)!ftruncate(b->code_fd, 0);
}

static void bash_execute(struct host *h, const struct message *m)
{
	struct bash *b = own(h);
	const char *nul = memchr(m->data, '\0', m->len);
	char line[512], before[96] = "", text[96];
	int n;

	b->begun = b->has_status = b->past = b->cut = false;
	b->sync = b->synced = 0;
	if (nul) {
		int at = 1;

		for (const char *p = m->data; p < nul; p++)
			at += *p == '\n';
		n = snprintf(text, sizeof(text),
			     "the code has a NUL byte in line %d%cbash: line %d: a NUL byte", at,
			     '\0', at);
		channel_send(h, ERROR, m->id, at, "SyntaxError", text, (size_t)n);
		b->last_status = 2;
		host_done(h, FAILED, 2);
		return;
	}
	if (ftruncate(b->code_fd, 0) < 0 ||
	    (m->len && pwrite(b->code_fd, m->data, m->len, 0) != (ssize_t)m->len)) {
		channel_say(h, ERROR, m->id, "no memory for the code");
		host_done(h, FAILED, 2);
		return;
	}
	/* $? as the last execution has left it. */
	if (b->last_status) {
		n = snprintf(text, sizeof(text), "return %d\n", b->last_status);
		if (pwrite(b->status_fd, text, (size_t)n, 0) == n &&
		    ftruncate(b->status_fd, n) == 0)
			snprintf(before, sizeof(before), "\\builtin . /proc/%d/fd/%d || ",
				 (int)getpid(), b->status_fd);
	}
	snprintf(line, sizeof(line),
		 "\\builtin echo %.23s B %u; %.127s\\builtin . /proc/%d/fd/%d <&%u >&%u 2>&%u && "
		 "\\builtin echo %.23s E %u 0 || \\builtin echo %.23s E %u $?\n"
		 "\\builtin echo %.23s D %u $?\n",
		 b->mark, m->id, before, (int)getpid(), b->code_fd, b->in, b->out, b->err, b->mark,
		 m->id, b->mark, m->id, b->mark, m->id);
	say(h, line);
}

static void finish(struct host *h)
{
	struct bash *b = own(h);
	bool interrupted = b->cut && !b->has_status;
	int status = b->status;

	page_disarm(h->page);
	give_back_memory(b);
	b->last_status = status;
	if (h->signalled && status == 130)
		interrupted = true;
	host_done(h, interrupted ? INTERRUPTED : status ? FAILED : OK, status);
}

static void ask_sync(struct host *h)
{
	struct bash *b = own(h);
	char line[96];

	/* It may be cut off from what a SIGINT has left of a line before it. */
	snprintf(line, sizeof(line), "\n\\builtin echo %.23s S %u $?\n", b->mark, ++b->sync);
	say(h, line);
}

/* What bash waited for was killed. It takes no notice of a SIGINT that comes before it has seen
 * that, and goes on with the next command: so one has to come right after. */
static void break_off(struct host *h)
{
	struct timespec nap = {0, 50000};

	for (int i = 0; i < 40; i++) {
		kill(h->interpreter, SIGINT);
		nanosleep(&nap, NULL);
	}
	kill(-h->interpreter, SIGINT);
}

static void bash_interrupt(struct host *h, unsigned times)
{
	struct bash *b = own(h);

	if (!b->begun) {
		host_timer(h, SYNC_MS);
		return;
	}
	if (times == 0 && !h->forced) {
		page_signal(h->page, 2, h->running);
		host_timer(h, SYNC_MS);
		return;
	}
	/* Another one is possible. Our line waits if nothing reads it: a few are enough. */
	page_disarm(h->page);
	if (h->forced) {
		break_off(h);
	} else if (!b->past) {
		/* A SIGINT is lost on a shell whose program just then ends otherwise. What has come
		 * after it is told; what had it may be at its end. */
		tree_signal(h, h->signalled_ticks + 1, true, SIGINT);
		kill(h->interpreter, SIGINT);
	}
	if (times < 4)
		ask_sync(h);
	arm(h);
	if (!h->forced && times < 4)
		host_timer(h, SYNC_MS << 2 * times);
}

/* At its top level, with the status that $? has there. */
static void on_past(struct host *h, int status)
{
	struct bash *b = own(h);

	if (!b->has_status) {
		b->cut = true;
		b->status = status;
	}
	b->past = true;
	page_disarm(h->page);
	if (!h->signalled && !h->forced)
		finish(h);
	else
		ask_sync(h);
}

static void on_word(struct host *h, char what, unsigned id, const char *rest)
{
	struct bash *b = own(h);
	char banner[64];
	int n = 0;

	if (what == 'R' && !h->up) {
		if (sscanf(rest, "%u %u %u %n", &b->in, &b->out, &b->err, &n) != 3)
			die("bash does not start as it should", 0);
		snprintf(banner, sizeof(banner), "GNU bash %.40s", rest + n);
		host_up(h, banner);
		return;
	}
	if (what == 'C' && id == h->request && h->request) {
		size_t len;
		char *reply;

		if (h->request_kind == COMPLETE) {
			reply = words_reply(&b->words, b->answer, &len);
			channel_send(h, REPLY, id, 0, "application/json", reply ? reply : "",
				     reply ? len : 0);
			free(reply);
		} else {
			channel_send(h, REPLY, id, 0, "text/plain", b->answer ? b->answer : "",
				     b->answer_len);
		}
		free(b->answer);
		b->answer = NULL;
		free(b->words.word);
		b->words.word = NULL;
		h->request = 0;
		return;
	}
	if (!h->running)
		return;
	if (what == 'S' && id == b->sync && b->sync > b->synced) {
		b->synced = id;
		if (!b->past)
			on_past(h, atoi(rest));
		else
			finish(h);
		return;
	}
	if (id != h->running)
		return;
	if (what == 'B' && !b->begun) {
		b->begun = true;
		arm(h);
		if (h->signalled)
			page_signal(h->page, 2, h->running);
	} else if (what == 'E' && !b->past) {
		b->has_status = true;
		b->status = atoi(rest);
	} else if (what == 'D' && !b->past) {
		on_past(h, atoi(rest));
	}
}

static void keep_answer(struct bash *b, const char *line, size_t len)
{
	char *bigger;

	if (b->answer_len + len + 2 > ANSWER_MAX_BYTES)
		return;
	bigger = realloc(b->answer, b->answer_len + len + 2);
	if (!bigger)
		return;
	b->answer = bigger;
	memcpy(b->answer + b->answer_len, line, len);
	b->answer_len += len;
	b->answer[b->answer_len++] = '\n';
	b->answer[b->answer_len] = '\0';
}

static void on_line(struct host *h, char *line)
{
	struct bash *b = own(h);
	char *at = strstr(line, b->mark), what;
	unsigned id = 0;
	int n = 0;

	if (!at) {
		if (h->request)
			keep_answer(b, line, strlen(line));
		return;
	}
	at += strlen(b->mark);
	if (at[0] != ' ' || !at[1])
		return;
	what = at[1];
	at += 2;
	if (what != 'R' && sscanf(at, " %u%n", &id, &n) != 1)
		return;
	on_word(h, what, id, at + n);
}

static void bash_report(struct host *h, char *text, size_t len)
{
	struct bash *b = own(h);

	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\n') {
			b->line[b->line_len] = '\0';
			b->line_len = 0;
			on_line(h, b->line);
		} else if (text[i] && b->line_len < sizeof(b->line) - 1) {
			b->line[b->line_len++] = text[i];
		}
	}
}

/* ---- completion and inspection ---- */

static void bash_ask(struct host *h, const struct message *m)
{
	struct bash *b = own(h);
	struct words *w = &b->words;
	bool inspect = m->kind == INSPECT;
	char *quoted, *line;
	size_t size;

	/* Standard input is empty. */
	if (m->kind == INPUT)
		return;
	free(w->word);
	free(b->answer);
	b->answer = NULL;
	b->answer_len = 0;
	if (!words_find(m->data, m->len, m->value, inspect, w) || (inspect && !*w->word)) {
		h->request = 0;
		if (inspect)
			channel_send(h, REPLY, m->id, 0, "text/plain", "", 0);
		else
			channel_say(h, REFUSED, m->id, "nothing can be completed here");
		return;
	}
	quoted = words_quote(w->word);
	size = (quoted ? strlen(quoted) : 0) * 3 + 512;
	line = quoted ? malloc(size) : NULL;
	if (!line)
		die("no memory for a message", 0);
	/* Left of || nothing ends a shell with `set -e`. */
	if (inspect)
		snprintf(line, size,
			 "\\builtin declare -p -- %s || \\builtin :\n\\builtin type -a -- %s || "
			 "\\builtin help -d -- %s || \\builtin :\n",
			 quoted, quoted, quoted);
	else if (w->variable)
		snprintf(line, size, "\\builtin compgen -v -- %s || \\builtin :\n", quoted);
	else
		snprintf(line, size,
			 "\\builtin compgen %s -- %s || \\builtin :\n\\builtin compgen %s -- %s || "
			 "\\builtin :\n",
			 "-d -S /", quoted, w->command ? "-c" : "-f", quoted);
	say(h, line);
	snprintf(line, size, "\\builtin echo %s C %u\n", b->mark, m->id);
	say(h, line);
	free(line);
	free(quoted);
}

/* ---- ends ---- */

static bool bash_must_die(struct host *h)
{
	char path[64], text[64] = "";
	unsigned long pages = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)h->interpreter);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		(void)!read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	/* Told without a SIGINT before: memory is used up, here or by what it waits for. */
	return sscanf(text, "%*u %lu", &pages) == 1 &&
	       pages * (unsigned long)sysconf(_SC_PAGESIZE) > SMALL_RSS_BYTES;
}

static unsigned long long status_field(pid_t pid, const char *file, const char *name, int base)
{
	char path[64], text[4096];
	ssize_t n;
	char *at;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	at = strstr(text, name);
	return at ? strtoull(at + strlen(name), NULL, base) : 0;
}

/* A job in the background ignores SIGINT and has bash's own /dev/null, or a pipe that it is fed by:
 * so may a program that bash waits for, and the doubtful ones are spared at first. */
static bool bash_in_foreground(struct host *h, pid_t child)
{
	char path[64], link[64];
	ssize_t n;

	if (!(status_field(child, "status", "SigIgn:", 16) & 1ull << (2 - 1)))
		return true;
	snprintf(path, sizeof(path), "/proc/%d/fd/0", (int)child);
	n = readlink(path, link, sizeof(link) - 1);
	link[n < 0 ? 0 : n] = '\0';
	if (strcmp(link, "/dev/null") == 0)
		return status_field(child, "fdinfo/0", "flags:", 8) & O_APPEND;
	return h->rounds > 8;
}

const struct interpreter interpreter_bash = {
	.name = "bash",
	.what = "bash cannot be rolled back",
	.how_it_ends = "exit, exec or set -e",
	.exec = bash_exec,
	.started = greet,
	.execute = bash_execute,
	.ask = bash_ask,
	.report = bash_report,
	.interrupt = bash_interrupt,
	.must_die = bash_must_die,
	.in_foreground = bash_in_foreground,
};
