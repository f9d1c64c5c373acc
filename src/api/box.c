/* Boxes with a supervisor of their own: see pale.h.
 *
 * Runs in the library's caller, a program with threads, signal handlers and an event loop of its
 * own: nothing here forks (posix_spawn), waits for a process by number, changes a signal, or lives
 * outside of its struct pale_box. Every descriptor is close-on-exec from birth. pale-box is trusted
 * as far as it is ours; what it passes on from the box is only handed to callbacks. */
#include "api.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "supervise/supervise.h"
#include "wire.h"

#define STAGE "supervise"
#define END_MS \
	10000 /* for pale-box to end by itself, which includes collecting what the box left */
#define TURN_READS 16 /* of one stream in one dispatch: others want their turn */

extern char **environ;

struct pale_box {
	struct pale_run_options options;
	pid_t pid;
	int pidfd, sock, epoll;
	int streams[2]; /* ends of the pipes for on_output, or -1 */
	bool said;	/* the end or an error came */
	bool ready;	/* of a session */
	char id[PALE_ID_SIZE];
	struct pale_result *result;
	struct pale_err error; /* why nothing ran, or what failed half-way */
};

/* --- starting ----------------------------------------------------------------------------------
 */

/* Nobody else could have put it there. */
static bool is_ours(const char *path, bool directory)
{
	struct stat st;

	return stat(path, &st) == 0 && (directory ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode)) &&
	       (st.st_uid == geteuid() || st.st_uid == 0) && !(st.st_mode & 022);
}

/* As told (tests, builds that are not installed), as installed, or beside this program's build. */
const char *api_program(const char *variable, const char *name, const char *beside, char *out,
			size_t size)
{
	const char *told = secure_getenv(variable);
	char exe[4096], *slash;
	ssize_t n;

	if (told && *told == '/')
		return told;
	snprintf(out, size, PALE_LIBEXECDIR "/%s", name);
	if (access(out, X_OK) == 0)
		return out;
	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	exe[n > 0 ? n : 0] = '\0';
	slash = strrchr(exe, '/');
	if (slash) {
		char path[4200];

		*slash = '\0';
		if (snprintf(path, sizeof(path), "%s/%s", exe, beside) < (int)sizeof(path) &&
		    is_ours(path, true) &&
		    snprintf(path, sizeof(path), "%s/%s/%s", exe, beside, name) <
			    (int)sizeof(path) &&
		    is_ours(path, false) && strlen(path) < size)
			memcpy(out, path, strlen(path) + 1);
	}
	return out;
}

static int spawn(const char *program, int sock, pid_t *ret_pid)
{
	static char name[] = "pale-box";
	char *argv[] = {name, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t all, none;
	int r = posix_spawn_file_actions_init(&actions);

	if (r)
		return r;
	r = posix_spawnattr_init(&attr);
	if (r) {
		posix_spawn_file_actions_destroy(&actions);
		return r;
	}
	sigfillset(&all);
	sigemptyset(&none);
	/* A session of its own: Ctrl-C at the caller's terminal is the caller's to handle. */
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
						POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	for (int fd = 0; r == 0 && fd < 3; fd++)
		r = posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, sock, WIRE_FD);
	/* What other threads forgot to close stays here. */
	if (r == 0)
		r = posix_spawn_file_actions_addclosefrom_np(&actions, WIRE_FD + 1);
	if (r == 0)
		r = posix_spawn(ret_pid, program, &actions, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return r;
}

/* The files' places go with it, for messages: the text has others. */
static int put_policy(struct buf *b, const struct pale_policy *p, struct pale_err *err)
{
	_cleanup_free_ char *text = NULL;
	int r = p ? policy_to_json(p->model, &text, err) : 0;

	if (r < 0)
		return r;
	wire_puts(b, p ? pale_policy_name(p) : NULL);
	wire_puts(b, text);
	for (size_t i = 0; p && i < p->model->nfiles; i++)
		wire_puts(b, p->model->files[i].where);
	return 0;
}

static void put_list(struct buf *b, const char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	wire_put(b, (const char *)&n, sizeof(n));
	for (size_t i = 0; i < n; i++)
		wire_puts(b, list[i]);
}

static int make_request(const struct pale_policy *policy, const struct plan_request *q,
			const struct pale_policy *base, const char *session, struct pale_err *err)
{
	_cleanup_buf_ struct buf b = BUF_INIT(WIRE_MAX);
	int r = policy_check(policy->model, err);

	if (r == 0)
		r = put_policy(&b, policy, err);
	if (r == 0)
		r = put_policy(&b, base, err);
	if (r < 0)
		return r;
	wire_puts(&b, q->code);
	wire_puts(&b, q->lang);
	wire_puts(&b, q->cwd);
	put_list(&b, q->argv);
	put_list(&b, (const char *const *)q->env);
	wire_puts(&b, session);
	wire_put(&b, (const char *)&q->nfiles, sizeof(q->nfiles));
	for (size_t i = 0; i < q->nfiles; i++) {
		wire_puts(&b, q->files[i].path);
		wire_puts(&b, q->files[i].content);
	}
	if (b.failed)
		return err_nomem(err, STAGE);
	r = wire_memfd(b.data, b.len);
	return r < 0 ? err_set(err, PALE_E_SYSTEM, STAGE, -r, "cannot hand over the request") : r;
}

static int watch(struct pale_box *box, int fd)
{
	struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(box->epoll, EPOLL_CTL_ADD, fd, &e);
}

/* A pipe for on_output: our end is in box, the other in *ret_write. */
static int make_stream(struct pale_box *box, int which, int *ret_write, struct pale_err *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make a pipe");
	box->streams[which] = ends[0];
	*ret_write = ends[1];
	if (fd_set_nonblock(ends[0], true) < 0 || watch(box, ends[0]) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot watch a pipe");
	return 0;
}

/* The descriptors by which values of secrets come. */
static int add_secrets(const struct policy_network *network, int *fds, size_t *n,
		       struct pale_err *err)
{
	for (size_t i = 0; i < network->nsecrets; i++) {
		const struct network_secret *s = &network->secrets[i];
		int fd = wire_secret_fd(s->value_from);

		if (fd < 0)
			continue;
		if (*n == WIRE_MAX_FDS)
			return err_set(err, PALE_E_USAGE, STAGE, 0,
				       "%s: more than %d secrets come by descriptor", s->where,
				       WIRE_SECRETS);
		if (fcntl(fd, F_GETFD) < 0)
			return err_set(err, PALE_E_USAGE, STAGE, errno,
				       "%s: cannot hand over descriptor %d", s->where, fd);
		fds[(*n)++] = fd;
	}
	return 0;
}

static int start(struct pale_box *box, const struct policy_network *network, int request,
		 int theirs, uint32_t flags, unsigned pool, struct pale_err *err)
{
	const struct pale_run_options *o = &box->options;
	struct wire_packet p = {
		.magic = WIRE_MAGIC, .version = WIRE_VERSION, .kind = WIRE_RUN, .value = pool};
	_cleanup_close_ int made_out = -1, made_err = -1;
	int out = o->use_fds ? o->out : -1, errors = o->use_fds ? o->err : -1;
	int fds[WIRE_MAX_FDS] = {request};
	char path[4200];
	const char *program = api_program("PALE_BOX_PROGRAM", "pale-box", "..", path, sizeof(path));
	size_t n = 1;
	int r = 0;

	if (o->on_output && out < 0) {
		r = make_stream(box, 0, &made_out, err);
		out = made_out;
	}
	if (r == 0 && o->on_output && errors < 0) {
		r = make_stream(box, 1, &made_err, err);
		errors = made_err;
	}
	if (r < 0)
		return r;
	if (o->use_fds && o->in >= 0) {
		p.flags |= WIRE_IN;
		fds[n++] = o->in;
	}
	if (out >= 0) {
		p.flags |= WIRE_OUT;
		fds[n++] = out;
	}
	if (errors >= 0) {
		p.flags |= WIRE_ERR;
		fds[n++] = errors;
	}
	r = add_secrets(network, fds, &n, err);
	if (r < 0)
		return r;
	p.flags |= (o->keep_output ? WIRE_KEEP : 0U) | (o->ordered ? WIRE_ORDERED : 0U) |
		   (o->on_event ? WIRE_EVENTS : 0U) | flags;
	r = spawn(program, theirs, &box->pid);
	if (r)
		return err_set(err, r == ENOENT ? PALE_E_NOTFOUND : PALE_E_SYSTEM, STAGE, r,
			       "cannot start the supervisor %s (PALE_BOX_PROGRAM names another)",
			       QUOTED(program));
	box->pidfd = pidfd_open(box->pid, 0);
	/* Ended at once, and the caller's program reaps every child: the number is another's soon.
	 */
	if (box->pidfd < 0 && errno == ESRCH)
		box->pid = 0;
	r = fd_send(box->sock, &p, sizeof(p), fds, n);
	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, -r, "the supervisor %s ended at once",
			       QUOTED(program));
	return 0;
}

int api_box_start(const struct pale_policy *policy, const struct pale_command *command,
		  const struct pale_run_options *options, bool session, unsigned pool,
		  const char *name, struct pale_box **ret, struct pale_err *err)
{
	_cleanup_close_ int request = -1, theirs = -1;
	_cleanup_free_ char *cwd = NULL;
	struct plan_request q;
	struct pale_box *box = calloc(1, sizeof(*box));
	int pair[2], r;

	*ret = NULL;
	if (!box)
		return err_nomem(err, STAGE);
	box->pidfd = box->sock = box->epoll = box->streams[0] = box->streams[1] = -1;
	r = api_options(options, &box->options, err);
	if (r == 0 && box->options.in_process)
		r = err_set(err, PALE_E_USAGE, STAGE, 0, "in_process is for pale_run() only");
	if (r == 0)
		r = api_request(policy, command, box->options.ordered, &q, &cwd, err);
	if (r == 0)
		r = request = make_request(policy, &q, box->options.base_policy, name, err);
	box->options.base_policy = NULL;
	if (r >= 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		r = err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make a socket");
	if (r >= 0) {
		box->sock = pair[0];
		/* In pale-box, 0 to 3 are replaced one after the other. */
		theirs = fcntl(pair[1], F_DUPFD_CLOEXEC, WIRE_FD + 1);
		close(pair[1]);
		box->epoll = epoll_create1(EPOLL_CLOEXEC);
		if (theirs < 0 || box->epoll < 0 || watch(box, box->sock) < 0)
			r = err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make an event queue");
	}
	if (r >= 0)
		r = start(box, &policy->model->network, request, theirs,
			  (q.tty ? WIRE_TTY : 0U) | (session ? WIRE_SESSION : 0U) |
				  (pool ? WIRE_POOL : 0U),
			  pool, err);
	if (r < 0) {
		pale_box_free(box);
		return r;
	}
	*ret = box;
	return 0;
}

int pale_box_start(const struct pale_policy *policy, const struct pale_command *command,
		   const struct pale_run_options *options, struct pale_box **ret,
		   struct pale_err *err)
{
	NEED_ERR(err);
	return api_box_start(policy, command, options, false, 0, NULL, ret, err);
}

/* --- watching ----------------------------------------------------------------------------------
 */

const char *pale_box_id(const struct pale_box *box)
{
	return box->id;
}

int pale_box_fd(const struct pale_box *box)
{
	return box->epoll;
}

static void close_stream(struct pale_box *box, int which)
{
	/* Taken out by hand: a copy of it in a forked child would keep it in the set. */
	epoll_ctl(box->epoll, EPOLL_CTL_DEL, box->streams[which], NULL);
	close_fd(&box->streams[which]);
}

static void read_stream(struct pale_box *box, int which)
{
	char data[16384];

	for (int i = 0; i < TURN_READS; i++) {
		ssize_t n = read(box->streams[which], data, sizeof(data));

		if (n > 0) {
			box->options.on_output(box->options.arg, which ? PALE_STDERR : PALE_STDOUT,
					       data, (size_t)n);
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0 || errno != EAGAIN)
			close_stream(box, which);
		return;
	}
}

static int take_result(struct pale_box *box, const struct wire_packet *p, char *data, size_t len)
{
	struct wire_reader r = {.data = data, .len = len};
	struct pale_result *result = calloc(1, sizeof(*result));
	const char *text;
	size_t n;

	if (!result)
		return -ENOMEM;
	result->exit_status = (int)p->flags;
	text = wire_get(&r, NULL);
	snprintf(result->outcome, sizeof(result->outcome), "%s", text ? text : "");
	text = wire_get(&r, NULL);
	snprintf(result->summary, sizeof(result->summary), "%s", text ? text : "");
	text = wire_get(&r, NULL);
	snprintf(result->id, sizeof(result->id), "%s", text ? text : "");
	text = wire_get(&r, &n);
	if (text && n == sizeof(result->counts))
		memcpy(result->counts, text, n);
	text = wire_get(&r, NULL);
	result->json = text ? strdup(text) : NULL;
	for (int i = 0; i < 2; i++) {
		text = wire_get(&r, &n);
		if (!text)
			continue;
		result->output[i] = malloc(n + 1);
		if (!result->output[i]) {
			pale_result_free(result);
			return -ENOMEM;
		}
		memcpy(result->output[i], text, n + 1);
		result->output_len[i] = n;
	}
	if (r.failed || !result->json) {
		pale_result_free(result);
		return -EPROTO;
	}
	box->result = result;
	box->error = p->err;
	return 0;
}

/* The lines that were too many for the caller's pace. */
static void tell_dropped(struct pale_box *box, uint64_t n)
{
	char line[96];

	snprintf(line, sizeof(line),
		 "{\"event\":\"events.suppressed\",\"of\":\"callback\",\"count\":%llu}",
		 (unsigned long long)n);
	if (box->options.on_event)
		box->options.on_event(box->options.arg, line);
}

static int take_packet(struct pale_box *box, const struct wire_packet *p, char *text, size_t len)
{
	switch ((enum wire_kind)p->kind) {
	case WIRE_EVENT:
		text[len] = '\0';
		if (box->options.on_event)
			box->options.on_event(box->options.arg, text);
		return 0;
	case WIRE_ID:
		if (len >= sizeof(box->id))
			return -EPROTO;
		memcpy(box->id, text, len);
		return 0;
	case WIRE_DROPPED: tell_dropped(box, p->value); return 0;
	case WIRE_END: box->said = true; return take_result(box, p, text, len);
	case WIRE_ERROR:
		box->said = true;
		box->error = p->err;
		return 0;
	case WIRE_READY: box->said = box->ready = true; return 0;
	case WIRE_RUN: break;
	}
	return -EPROTO;
}

/* One packet: 1, 0 if there is none now, -EPIPE at the end, or another negative errno. */
static int read_packet(struct pale_box *box)
{
	_cleanup_free_ struct wire_packet *p = malloc(sizeof(*p) + WIRE_INLINE + 1);
	_cleanup_buf_ struct buf b = BUF_INIT(WIRE_MAX);
	_cleanup_close_ int memfd = -1;
	struct pollfd poll_one = {box->sock, POLLIN, 0};
	size_t nfds = 0;
	ssize_t n;
	int r;

	if (!p)
		return -ENOMEM;
	if (poll(&poll_one, 1, 0) <= 0)
		return 0;
	n = fd_recv(box->sock, p, sizeof(*p) + WIRE_INLINE, &memfd, 1, &nfds);
	/* It ended before it had read all of ours: said once, and before its own last words. */
	if (n == -ECONNRESET)
		n = fd_recv(box->sock, p, sizeof(*p) + WIRE_INLINE, &memfd, 1, &nfds);
	if (n == 0 || n == -ECONNRESET)
		return -EPIPE;
	if (n < 0)
		return n == -EAGAIN || n == -EINTR ? 0 : (int)n;
	if ((size_t)n < sizeof(*p) || p->magic != WIRE_MAGIC || p->version != WIRE_VERSION ||
	    p->len != (size_t)n - sizeof(*p) || (p->has_memfd != 0) != (nfds == 1))
		return -EPROTO;
	if (!nfds)
		r = take_packet(box, p, (char *)(p + 1), p->len);
	else if ((r = wire_read_memfd(memfd, &b)) == 0)
		r = take_packet(box, p, b.data ? b.data : (char *)(p + 1), b.len);
	return r < 0 ? r : 1;
}

/* The supervisor ended its side, or it makes no sense any more. */
static void hang_up(struct pale_box *box, int error)
{
	epoll_ctl(box->epoll, EPOLL_CTL_DEL, box->sock, NULL);
	close_fd(&box->sock);
	if (box->said)
		return;
	box->said = true;
	err_set(&box->error, PALE_E_SYSTEM, STAGE, error == -EPIPE ? 0 : -error,
		"the supervisor of the box was lost; the box died with it");
}

static bool ended(const struct pale_box *box)
{
	return box->sock < 0 && box->streams[0] < 0 && box->streams[1] < 0;
}

int pale_box_dispatch(struct pale_box *box, struct pale_err *err)
{
	NEED_ERR(err);
	for (int i = 0; i < TURN_READS && box->sock >= 0; i++) {
		int r = read_packet(box);

		if (r == 0)
			break;
		if (r < 0)
			hang_up(box, r);
	}
	for (int i = 0; i < 2; i++)
		if (box->streams[i] >= 0)
			read_stream(box, i);
	if (!ended(box))
		return 0;
	if (err)
		*err = box->error;
	return box->result ? 1 : -(int)box->error.code;
}

int api_box_ready(struct pale_box *box, struct pale_err *err)
{
	int r;

	while ((r = pale_box_dispatch(box, err)) == 0 && !box->ready) {
		struct pollfd p = {box->epoll, POLLIN, 0};

		if (poll(&p, 1, -1) < 0 && errno != EINTR)
			return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot wait for the box");
	}
	return box->ready ? 1 : r < 0 ? r : 0;
}

int pale_box_wait(struct pale_box *box, struct pale_result **ret, struct pale_err *err)
{
	NEED_ERR(err);
	int r;

	*ret = NULL;
	while ((r = pale_box_dispatch(box, err)) == 0) {
		struct pollfd p = {box->epoll, POLLIN, 0};

		if (poll(&p, 1, -1) < 0 && errno != EINTR)
			return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot wait for the box");
	}
	if (r < 0)
		return r;
	*ret = take_ptr(box->result);
	/* A second wait has nothing to hand over. */
	err_set(&box->error, PALE_E_USAGE, STAGE, 0, "the result was handed over already");
	return 0;
}

/* --- commands ----------------------------------------------------------------------------------
 */

/* To a box that has ended, anything may be said. */
static int tell(struct pale_box *box, const struct supervise_command *c, struct pale_err *err)
{
	if (box->sock < 0 || send(box->sock, c, sizeof(*c), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 ||
	    errno == EPIPE || errno == ECONNRESET)
		return 0;
	return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot reach the supervisor");
}

int pale_box_signal(struct pale_box *box, int signal_number, struct pale_err *err)
{
	NEED_ERR(err);
	const struct supervise_command c = {.kind = SUPERVISE_SIGNAL, .value = signal_number};

	if (signal_number < 1 || signal_number > SIGRTMAX)
		return err_set(err, PALE_E_USAGE, STAGE, 0, "there is no signal %d", signal_number);
	return tell(box, &c, err);
}

int pale_box_resize(struct pale_box *box, unsigned short rows, unsigned short columns,
		    struct pale_err *err)
{
	NEED_ERR(err);
	const struct supervise_command c = {
		.kind = SUPERVISE_RESIZE, .rows = rows, .columns = columns};

	return tell(box, &c, err);
}

int pale_box_destroy(struct pale_box *box, struct pale_err *err)
{
	NEED_ERR(err);
	const struct supervise_command c = {.kind = SUPERVISE_DESTROY};

	return tell(box, &c, err);
}

/* Reaps pale-box, whose socket is closed: it ends, or is ended. */
static void reap(struct pale_box *box)
{
	struct pollfd p = {box->pidfd, POLLIN, 0};
	uint64_t until = clock_mono_us() + END_MS * 1000ULL;
	siginfo_t info;

	if (box->pid <= 0)
		return;
	if (box->pidfd < 0) {
		/* Its number is safe as long as nobody else reaps it. */
		kill(box->pid, SIGKILL);
		while (waitpid(box->pid, NULL, 0) < 0 && errno == EINTR)
			;
		return;
	}
	for (;;) {
		uint64_t now = clock_mono_us();
		int n = poll(&p, 1, now < until ? (int)((until - now) / 1000) + 1 : 0);

		if (n > 0 || (n < 0 && errno != EINTR))
			break;
		if (n == 0) {
			pidfd_send_signal(box->pidfd, SIGKILL, NULL, 0);
			until += END_MS * 1000ULL;
		}
	}
	while (waitid(P_PIDFD, (id_t)box->pidfd, &info, WEXITED) < 0 && errno == EINTR)
		;
}

void pale_box_free(struct pale_box *box)
{
	if (!box)
		return;
	close_fd(&box->sock);
	close_fd(&box->streams[0]);
	close_fd(&box->streams[1]);
	reap(box);
	close_fd(&box->pidfd);
	close_fd(&box->epoll);
	pale_result_free(box->result);
	free(box);
}
