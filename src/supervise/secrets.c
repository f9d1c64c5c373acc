/* Secrets: see secrets.h.
 *
 * In the supervisor, before the box's set-up child is cloned: nothing of a value is left by then
 * for it to have a copy of. While a value is in memory the process is not dumpable: no core, no
 * look into it by others of the same user. Each value is read into one buffer, written on and
 * wiped; the standard library's streams and growing buffers, which leave copies behind, are not
 * used. What is read is the caller's own, yet its size and bytes are checked: it ends up in a
 * request's header. */
#include "supervise/secrets.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/num.h"
#include "base/str.h"

#define STAGE	   "supervise"
#define COMMAND_MS 30000

extern char **environ;

void secrets_placeholders_free(char **placeholders)
{
	for (char **p = placeholders; p && *p; p++)
		free(*p);
	free(placeholders);
}

int secrets_placeholders(const struct policy_network *n, char ***ret, struct pale_err *err)
{
	char **all;

	*ret = NULL;
	if (!n || !n->nsecrets)
		return 0;
	all = calloc(n->nsecrets + 1, sizeof(*all));
	for (size_t i = 0; all && i < n->nsecrets; i++) {
		unsigned char random[20];
		char text[64] = "pale-secret-";

		if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
			secrets_placeholders_free(all);
			return err_set(err, PALE_E_SYSTEM, STAGE, errno,
				       "cannot make a placeholder");
		}
		/* Nothing in it needs an escape anywhere, whatever it is put into. */
		for (size_t j = 0; j < sizeof(random); j++)
			snprintf(text + strlen(text), 3, "%02x", random[j]);
		all[i] = strdup(text);
		if (!all[i]) {
			secrets_placeholders_free(all);
			all = NULL;
		}
	}
	*ret = all;
	return all ? 0 : err_nomem(err, STAGE);
}

struct value {
	char text[SECRET_MAX + 1];
	size_t len;
};

/* The source is the policy's and no secret. */
static int fail(const struct network_secret *s, int sys, const char *why, struct pale_err *err)
{
	return err_set(err, PALE_E_USAGE, STAGE, sys, "%s: the secret %s, %s: %s", s->where,
		       QUOTED(s->env ? s->env : s->file), QUOTED(s->value_from), why);
}

/* Up to the end, which has to come in time. 0 or a negative errno. */
static int read_value(struct value *v, int fd, int time_ms)
{
	uint64_t until = clock_mono_us() + (uint64_t)time_ms * 1000;

	for (;;) {
		struct pollfd p = {fd, POLLIN, 0};
		uint64_t now = clock_mono_us();
		int polled = now >= until ? 0 : poll(&p, 1, (int)((until - now) / 1000) + 1);
		ssize_t n;

		if (polled == 0)
			return -ETIMEDOUT;
		if (polled < 0)
			continue; /* a signal: reading would wait without a limit */
		n = read(fd, v->text + v->len, sizeof(v->text) - v->len);
		if (n == 0)
			return 0;
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		v->len += n > 0 ? (size_t)n : 0;
		if (v->len == sizeof(v->text))
			return -EFBIG;
	}
}

static int from_file(struct value *v, const struct network_secret *s, const char *path,
		     struct pale_err *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	int r = fd < 0 ? -errno : read_value(v, fd, COMMAND_MS);

	return r < 0 ? fail(s, -r, "cannot read the file", err) : 0;
}

/* The caller's own command, as the caller: it prints the value. */
static int from_command(struct value *v, const struct network_secret *s, const char *line,
			struct pale_err *err)
{
	char *const argv[] = {(char[]){"sh"}, (char[]){"-c"}, (char *)(uintptr_t)line, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int ends[2], r, status = 0;
	sigset_t broken_pipe;
	pid_t pid = -1;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make a pipe");
	/* We ignore it; programs expect that they are ended by it. */
	sigemptyset(&broken_pipe);
	sigaddset(&broken_pipe, SIGPIPE);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigdefault(&attr, &broken_pipe);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
	r = posix_spawn_file_actions_init(&actions);
	if (r == 0) {
		r = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
		if (r == 0)
			r = posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
		if (r == 0)
			r = posix_spawn(&pid, "/bin/sh", &actions, &attr, argv, environ);
		posix_spawn_file_actions_destroy(&actions);
	}
	posix_spawnattr_destroy(&attr);
	close(ends[1]);
	if (r == 0) {
		r = -read_value(v, ends[0], COMMAND_MS);
		if (r)
			kill(pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	close(ends[0]);
	if (r)
		return fail(s, r, "the command gave none", err);
	return status == 0 ? 0 : fail(s, 0, "the command failed", err);
}

static int from_fd(struct value *v, const struct network_secret *s, const char *text,
		   struct pale_err *err)
{
	uint64_t fd;
	int r = num_parse_u64(text, INT32_MAX, &fd);

	if (r == 0)
		r = read_value(v, (int)fd, COMMAND_MS);
	if (r < 0)
		return fail(s, -r, "cannot read the descriptor", err);
	/* It was handed over to us, not to what we start. */
	(void)fcntl((int)fd, F_SETFD, FD_CLOEXEC);
	return 0;
}

static int from_env(struct value *v, const struct network_secret *s, const char *name,
		    struct pale_err *err)
{
	const char *text = getenv(name);
	size_t len = text ? strlen(text) : 0;

	if (!text)
		return fail(s, 0, "the variable is not set", err);
	if (len > SECRET_MAX)
		return fail(s, EFBIG, "the variable is too long", err);
	memcpy(v->text, text, len);
	v->len = len;
	return 0;
}

static int check(const struct network_secret *s, struct value *v, struct pale_err *err)
{
	/* A file or a command ends its line. */
	while (v->len && (v->text[v->len - 1] == '\n' || v->text[v->len - 1] == '\r'))
		v->len--;
	if (v->len == 0)
		return fail(s, 0, "its value is empty", err);
	if (str_utf8_prefix(v->text, v->len) != v->len)
		return fail(s, 0, "its value is no UTF-8 text", err);
	for (size_t i = 0; i < v->len; i++)
		if ((unsigned char)v->text[i] < 0x20 || v->text[i] == 0x7f)
			return fail(s, 0, "its value has more than one line, or control characters",
				    err);
	return 0;
}

/* As a JSON string; what needs an escape there is few after check(). */
static int write_value(int fd, const struct value *v)
{
	size_t from = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i <= v->len; i++) {
		bool special = i < v->len && (v->text[i] == '"' || v->text[i] == '\\');

		if (i < v->len && !special)
			continue;
		r = fd_write_all(fd, v->text + from, i - from);
		if (r == 0 && special)
			r = fd_write_all(fd, "\\", 1);
		from = i;
	}
	return r;
}

static int get(const struct network_secret *s, struct value *v, struct pale_err *err)
{
	const char *from = s->value_from, *colon = strchr(from, ':');
	int r;

	if (!colon)
		return fail(s, 0, "it has no source", err);
	if (str_starts(from, "env:"))
		r = from_env(v, s, colon + 1, err);
	else if (str_starts(from, "file:"))
		r = from_file(v, s, colon + 1, err);
	else if (str_starts(from, "command:"))
		r = from_command(v, s, colon + 1, err);
	else if (str_starts(from, "fd:"))
		r = from_fd(v, s, colon + 1, err);
	else
		r = fail(s, 0, "its source is of no known kind", err);
	return r == 0 ? check(s, v, err) : r;
}

static int write_all(const struct policy_network *n, char *const *placeholders, int fd,
		     struct value *v, struct pale_err *err)
{
	for (size_t i = 0; i < n->nsecrets; i++) {
		char before[160];
		int r;

		v->len = 0;
		r = get(&n->secrets[i], v, err);
		if (r < 0)
			return r;
		snprintf(before, sizeof(before), "%s{\"placeholder\":\"%s\",\"value\":\"",
			 i ? "," : "[", placeholders[i]);
		r = fd_write_all(fd, before, strlen(before));
		if (r == 0)
			r = write_value(fd, v);
		if (r == 0)
			r = fd_write_all(fd, "\"}", 2);
		if (r < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, -r,
				       "cannot hand the secrets to the broker");
	}
	return fd_write_all(fd, n->nsecrets ? "]" : "[]", n->nsecrets ? 1 : 2) < 0
		       ? err_set(err, PALE_E_SYSTEM, STAGE, EIO, "cannot hand over the secrets")
		       : 0;
}

/* `ps e` shows what a process was started with. */
static void wipe_variables(const struct policy_network *n)
{
	for (size_t i = 0; i < n->nsecrets; i++) {
		const char *from = n->secrets[i].value_from;
		char *text = str_starts(from, "env:") ? getenv(from + 4) : NULL;

		if (text)
			explicit_bzero(text, strlen(text));
	}
}

int secrets_write(const struct policy_network *n, char *const *placeholders, bool own_process,
		  int fd, struct pale_err *err)
{
	int dumpable = prctl(PR_GET_DUMPABLE), r;
	struct value *v;

	if (!n->nsecrets)
		return fd_write_all(fd, "[]", 2) < 0 ? err_set(err, PALE_E_SYSTEM, STAGE, EIO,
							       "cannot write the configuration")
						     : 0;
	v = malloc(sizeof(*v));
	if (!v)
		return err_nomem(err, STAGE);
	prctl(PR_SET_DUMPABLE, 0);
	r = write_all(n, placeholders, fd, v, err);
	explicit_bzero(v, sizeof(*v));
	free(v);
	if (own_process)
		wipe_variables(n);
	prctl(PR_SET_DUMPABLE, dumpable == 1 ? 1 : 0);
	return r;
}
