/* Node, and its driver (kernels/node/driver.js), to which messages go on as they came, on a pipe,
 * with the whole length in one header. What the driver has to say it writes to the channel itself:
 * a packet is one system call, so that whatever ends or interrupts it leaves no half of one. */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host.h"

#define HEADER 20

/* The driver's: after stdin, stdout, stderr. */
enum { COMMANDS = 3, REPORTS = 4, PAGE = 5, CHANNEL = 6, LAST = CHANNEL };

static void node_exec(struct host *h, int commands, int reports)
{
	int fds[] = {commands, reports, h->page_fd, h->channel};
	char *argv[8], main_script[PATH_MAX + 128], *at = main_script;
	size_t n = 0;

	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		fds[i] = fcntl(fds[i], F_DUPFD, 64);
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (dup2(fds[i], COMMANDS + (int)i) < 0)
			return;
	syscall(SYS_close_range, LAST + 1U, UINT_MAX, 0U);
	/* The main script's import() is the one that looks for modules from the directory in which
	 * it was started; -e also has the built-in modules as globals. */
	at += sprintf(at, "require(\"");
	for (const char *p = h->argv[3]; *p && p - h->argv[3] < PATH_MAX / 2; p++) {
		if (*p == '"' || *p == '\\')
			*at++ = '\\';
		*at++ = *p;
	}
	sprintf(at, "\")((s,o)=>import(s,o))");
	argv[n++] = (char *)(uintptr_t) "node";
	argv[n++] = (char *)(uintptr_t) "-e";
	argv[n++] = main_script;
	argv[n] = NULL;
	execv(h->argv[2], argv);
}

static void put32(unsigned char *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (unsigned char)(v >> 8 * i);
}

static void forward(struct host *h, uint8_t kind, uint32_t id, int32_t value, const char *data,
		    size_t len)
{
	unsigned char header[HEADER] = {kind};

	put32(header + 4, id);
	put32(header + 8, (uint32_t)value);
	put32(header + 12, (uint32_t)len);
	host_queue(h, header, sizeof(header));
	if (len)
		host_queue(h, data, len);
}

static void node_execute(struct host *h, const struct message *m)
{
	h->page->target = h->interpreter;
	forward(h, m->kind, m->id, m->value, m->data, m->len);
}

static void node_ask(struct host *h, const struct message *m)
{
	/* The driver answers it. */
	forward(h, m->kind, m->id, m->value, m->data, m->len);
}

/* The driver says one line, once: it is up, and who it is. Later a newline says that it has
 * answered what was asked, and a mark that it waits for the signal that it has missed. */
static void node_report(struct host *h, char *text, size_t len)
{
	char banner[128];
	size_t n = 0;

	if (h->up) {
		if (memchr(text, '\n', len))
			h->request = 0;
		if (memchr(text, '!', len))
			page_signal(h->page, 2, h->running);
		return;
	}
	for (size_t i = 0; i < len && text[i] != '\n' && n < sizeof(banner) - 1; i++)
		if (text[i] >= ' ' && text[i] < 0x7f)
			banner[n++] = text[i];
	banner[n] = '\0';
	host_up(h, banner);
}

static void node_interrupt(struct host *h, unsigned times)
{
	/* Code that computes gets the signal, by now from a lever or, if it had not begun then,
	 * from here; one that waits gets a message; and a program that node waits for, the signal.
	 */
	/* A callback of an earlier execution may keep it from all that. */
	page_signal(h->page, 2, times < 4 ? h->running : 0);
	if (times == 0)
		forward(h, INTERRUPT, h->running, 0, NULL, 0);
	/* Not before node itself has had its own: it would go on with the next line. */
	if (times == 1)
		tree_signal(h, h->started_ticks, true, SIGINT);
	if (times < 50 && !h->forced)
		host_timer(h, times < 1 ? 3 : times < 5 ? 5 : 50);
}

static bool node_done(struct host *h)
{
	return h->page->done == h->running;
}

static bool node_must_die(struct host *h)
{
	(void)h;
	return true;
}

static bool node_in_foreground(struct host *h, pid_t child)
{
	(void)h;
	(void)child;
	return true;
}

const struct interpreter interpreter_node = {
	.name = "node",
	.what = "node cannot be rolled back",
	.how_it_ends = "process.exit",
	.exec = node_exec,
	.execute = node_execute,
	.ask = node_ask,
	.report = node_report,
	.interrupt = node_interrupt,
	.done = node_done,
	.must_die = node_must_die,
	.in_foreground = node_in_foreground,
};
