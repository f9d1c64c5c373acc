/* The host's side: see host.h. In the caller's process. What it says is our own program's; boxes
 * speak to its servers, and it only counts them. */
#include "host.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

#include "base/str.h"

#define STAGE "verify"

extern char **environ;

static int spawn(struct host_side *h, const char *program, const char *dir, int in, int out)
{
	char *argv[] = {(char *)(uintptr_t)program, (char *)(uintptr_t) "--host",
			(char *)(uintptr_t)dir, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int r;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	/* An interrupt at the terminal is for us: it has to take down what it put up. */
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
	r = posix_spawn(&h->pid, program, &actions, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	if (r)
		h->pid = 0;
	return r;
}

/* Lines up to the one that says so. */
static int hear(struct host_side *h, struct buf *to, const char *last)
{
	for (;;) {
		char *room = buf_room(to, 4096);
		ssize_t n;

		if (!room)
			return -ENOMEM;
		n = read(h->out, room, 4095);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EPIPE;
		to->len += (size_t)n;
		to->data[to->len] = '\0';
		if (str_ends(to->data, last))
			return 0;
	}
}

int host_start(struct host_side *h, const char *program, const char *dir, struct pale_err *err)
{
	_cleanup_close_ int in = -1, out = -1;
	int a[2], b[2], r;

	*h = (struct host_side){
		.in = -1, .out = -1, .text = BUF_INIT(1 << 16), .after = BUF_INIT(1 << 20)};
	if (pipe2(a, O_CLOEXEC) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make a pipe");
	in = a[0];
	h->in = a[1];
	if (pipe2(b, O_CLOEXEC) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make a pipe");
	h->out = b[0];
	out = b[1];
	r = -spawn(h, program, dir, in, out);
	close_fd(&out);
	if (r == 0)
		r = hear(h, &h->text, "ready\n");
	if (r < 0)
		return err_set(err, PALE_E_HOST, STAGE, -r,
			       "cannot put up what the attacks are after (%s --host)",
			       QUOTED(program));
	for (char *rest = h->text.data, *line; (line = strsep(&rest, "\n"));)
		if (strchr(line, '=') && h->ntargets < HOST_TARGETS)
			h->targets[h->ntargets++] = line;
	return 0;
}

int host_stop(struct host_side *h, struct pale_err *err)
{
	int r, status;

	close_fd(&h->in);
	r = hear(h, &h->after, "done\n");
	while (h->pid > 0 && waitpid(h->pid, &status, 0) < 0 && errno == EINTR)
		;
	h->pid = 0;
	return r < 0 ? err_set(err, PALE_E_SYSTEM, STAGE, -r,
			       "the host's side of the attacks ended early")
		     : 0;
}

bool host_saw(const struct host_side *h, const char *what)
{
	char line[128];
	const char *at;

	snprintf(line, sizeof(line), "broken %s\n", what);
	at = h->after.data ? strstr(h->after.data, line) : NULL;
	return at && (at == h->after.data || at[-1] == '\n');
}

void host_done(struct host_side *h)
{
	close_fd(&h->in);
	if (h->pid > 0) {
		/* It takes down what it put up, at the end of its input. */
		while (waitpid(h->pid, NULL, 0) < 0 && errno == EINTR)
			;
		h->pid = 0;
	}
	close_fd(&h->out);
	buf_done(&h->text);
	buf_done(&h->after);
}
