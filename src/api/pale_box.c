/* pale-box: the supervisor of one box, for a program that uses the library and has a loop and
 * threads of its own. Started by the library (box.c) with a socket as descriptor 3 and nothing else
 * but /dev/null; see wire.h for what is said.
 *
 * Runs with the caller's privileges, single-threaded. The request is the caller's and trusted as
 * `pale run` trusts its command line; the box's bytes are only passed on. When the caller goes, the
 * socket ends, and the supervisor destroys its box. When pale-box dies, the kernel kills the box.
 */
#include "api.h"

#include <fcntl.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "supervise/supervise.h"
#include "wire.h"

#define STAGE	    "supervise"
#define QUEUE_BYTES (4u << 20) /* events that the caller has not taken */
#define QUEUE_LINES 4096

/* Events that did not fit into the socket, in order. */
struct queue {
	char **lines;
	size_t first, n, bytes;
	uint64_t dropped;
};

struct box_run {
	struct pale_run_options options;
	struct queue queue;
	bool gone; /* a session that is on its own: WIRE_FD is another's number now */
};

/* 0, -EAGAIN if it does not fit now, or another negative errno. */
static int send_packet(struct wire_packet *p, const char *text, size_t len, int flags)
{
	_cleanup_close_ int memfd = -1;
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec iov[2] = {{p, sizeof(*p)}, {(void *)(uintptr_t)text, 0}};
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};

	p->magic = WIRE_MAGIC;
	p->version = WIRE_VERSION;
	if (len > WIRE_INLINE) {
		memfd = wire_memfd(text, len);
		if (memfd < 0)
			return memfd;
		p->has_memfd = 1;
		m.msg_control = &control;
		m.msg_controllen = sizeof(control.bytes);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &memfd, sizeof(int));
	} else {
		iov[1].iov_len = len;
		p->len = (uint32_t)len;
	}
	for (;;) {
		if (sendmsg(WIRE_FD, &m, MSG_NOSIGNAL | flags) >= 0)
			return 0;
		if (errno != EINTR)
			return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	}
}

static int send_event(const char *line, int flags)
{
	struct wire_packet p = {.kind = WIRE_EVENT};

	return send_packet(&p, line, strlen(line), flags);
}

/* As much as fits. */
static int flush(struct queue *q, int flags)
{
	while (q->n) {
		int r = send_event(q->lines[q->first], flags);

		if (r < 0)
			return r;
		q->bytes -= strlen(q->lines[q->first]);
		free(q->lines[q->first]);
		q->first = (q->first + 1) % QUEUE_LINES;
		q->n--;
	}
	if (q->dropped) {
		struct wire_packet p = {.kind = WIRE_DROPPED, .value = q->dropped};
		int r = send_packet(&p, NULL, 0, flags);

		if (r < 0)
			return r;
		q->dropped = 0;
	}
	return 0;
}

static void queue_add(struct queue *q, const char *line)
{
	size_t len = strlen(line);
	char *copy;

	if (!q->lines)
		q->lines = calloc(QUEUE_LINES, sizeof(*q->lines));
	copy = q->lines && q->n < QUEUE_LINES && q->bytes + len <= QUEUE_BYTES && !q->dropped
		       ? strdup(line)
		       : NULL;
	if (!copy) {
		q->dropped++;
		return;
	}
	q->lines[(q->first + q->n++) % QUEUE_LINES] = copy;
	q->bytes += len;
}

/* Before anything else: the socket has room. */
static void on_id(void *arg, const char *id)
{
	struct wire_packet p = {.kind = WIRE_ID};

	(void)arg;
	(void)!send_packet(&p, id, strlen(id), MSG_DONTWAIT);
}

static void on_event(void *arg, const char *line)
{
	struct box_run *b = arg;
	int r = flush(&b->queue, MSG_DONTWAIT);

	if (r == 0)
		r = send_event(line, MSG_DONTWAIT);
	/* The supervisor itself sees the end of the socket, and destroys the box. */
	if (r == -EAGAIN)
		queue_add(&b->queue, line);
}

static void send_error(const struct pale_err *err)
{
	struct wire_packet p = {.kind = WIRE_ERROR, .err = *err};

	(void)!send_packet(&p, NULL, 0, 0);
}

static int send_result(struct pale_result *r, const struct pale_err *err)
{
	_cleanup_buf_ struct buf b = BUF_INIT(WIRE_MAX);
	struct wire_packet p = {.kind = WIRE_END, .flags = (uint32_t)r->exit_status, .err = *err};

	wire_puts(&b, r->outcome);
	wire_puts(&b, r->summary);
	wire_puts(&b, r->id);
	wire_put(&b, (const char *)r->counts, sizeof(r->counts));
	wire_puts(&b, pale_result_json(r));
	for (int i = 0; i < 2; i++)
		wire_put(&b, r->output[i], r->output_len[i]);
	if (b.failed || !r->json)
		return -ENOMEM;
	return send_packet(&p, b.data, b.len, 0);
}

/* A session is ready: from now on it is on its own. */
static void on_ready(void *arg)
{
	struct wire_packet p = {.kind = WIRE_READY};
	struct box_run *b = arg;

	(void)!send_packet(&p, NULL, 0, MSG_DONTWAIT);
	close(WIRE_FD);
	b->gone = true;
}

struct request {
	struct buf text;
	struct pale_policy *policy, *base;
	const char **argv, **env;
	const char *session; /* its name, or NULL */
	struct pale_file *files;
	struct pale_command command;
};

static void request_done(struct request *q)
{
	buf_done(&q->text);
	pale_policy_free(q->policy);
	pale_policy_free(q->base);
	free(q->argv);
	free(q->env);
	free(q->files);
}

static int malformed(struct pale_err *err)
{
	return err_set(err, PALE_E_USAGE, STAGE, 0,
		       "a malformed request: pale-box is started by libpale, of the same version");
}

static int get_policy(struct wire_reader *r, struct pale_policy **ret, struct pale_err *err)
{
	const char *name = wire_get(r, NULL), *text;
	size_t len;
	int e;

	text = wire_get(r, &len);
	if (r->failed)
		return malformed(err);
	if (!text || !name)
		return 0;
	e = pale_policy_new(ret, err);
	if (e == 0)
		e = policy_load_memory((*ret)->model, text, len, "policy.json", "/", true, err);
	for (size_t i = 0; e == 0 && i < (*ret)->model->nfiles; i++) {
		const char *where = wire_get(r, NULL);
		char *copy = where ? strdup(where) : NULL;

		if (r->failed)
			return malformed(err);
		if (where && !copy)
			return err_nomem(err, STAGE);
		if (copy) {
			free((*ret)->model->files[i].where);
			(*ret)->model->files[i].where = copy;
		}
	}
	if (e == 0)
		snprintf((*ret)->name, sizeof((*ret)->name), "%s", name);
	return e;
}

static int get_list(struct wire_reader *r, const char ***ret, struct pale_err *err)
{
	size_t len, n = 0;
	const char *count = wire_get(r, &len);

	if (!count || len != sizeof(n))
		return malformed(err);
	memcpy(&n, count, sizeof(n));
	if (n > r->len)
		return malformed(err);
	*ret = calloc(n + 1, sizeof(**ret));
	if (!*ret)
		return err_nomem(err, STAGE);
	for (size_t i = 0; i < n; i++)
		if (!((*ret)[i] = wire_get(r, NULL)))
			return malformed(err);
	return 0;
}

static int get_files(struct wire_reader *r, struct request *q, struct pale_err *err)
{
	size_t len, n = 0;
	const char *count = wire_get(r, &len);

	if (!count || len != sizeof(n))
		return malformed(err);
	memcpy(&n, count, sizeof(n));
	if (n > r->len)
		return malformed(err);
	q->files = calloc(n + 1, sizeof(*q->files));
	if (!q->files)
		return err_nomem(err, STAGE);
	for (size_t i = 0; i < n; i++) {
		q->files[i].path = wire_get(r, NULL);
		q->files[i].content = wire_get(r, NULL);
	}
	q->command.files = q->files;
	q->command.nfiles = n;
	return 0;
}

static int get_request(int memfd, struct request *q, struct pale_err *err)
{
	struct wire_reader r = {0};
	int e = wire_read_memfd(memfd, &q->text);

	if (e < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, -e, "cannot read the request");
	r.data = q->text.data;
	r.len = q->text.len;
	e = get_policy(&r, &q->policy, err);
	if (e == 0)
		e = get_policy(&r, &q->base, err);
	if (e < 0)
		return e;
	q->command.size = sizeof(q->command);
	q->command.code = wire_get(&r, NULL);
	q->command.lang = wire_get(&r, NULL);
	q->command.cwd = wire_get(&r, NULL);
	e = get_list(&r, &q->argv, err);
	if (e == 0)
		e = get_list(&r, &q->env, err);
	q->session = wire_get(&r, NULL);
	if (e == 0)
		e = get_files(&r, q, err);
	if (e < 0)
		return e;
	if (r.failed || !q->policy)
		return malformed(err);
	q->command.argv = q->argv;
	q->command.env = (char *const *)(uintptr_t)q->env;
	return 0;
}

/* The descriptors of secrets go where the policy says that they are. Ours lie below, or were just
 * received: those move out of the way first. */
static int place_secrets(const struct policy_network *network, int *fds, size_t n,
			 struct pale_err *err)
{
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		int fd = fcntl(fds[i], F_DUPFD_CLOEXEC, 512);

		close_fd(&fds[i]);
		if (fd < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, errno,
				       "cannot take the descriptor of a secret");
		fds[i] = fd;
	}
	for (size_t i = 0; i < network->nsecrets; i++) {
		const struct network_secret *s = &network->secrets[i];
		int want = wire_secret_fd(s->value_from);

		if (want < 0)
			continue;
		if (used == n)
			return malformed(err);
		if (fcntl(want, F_GETFD) >= 0)
			return err_set(err, PALE_E_USAGE, STAGE, EBUSY,
				       "%s: descriptor %d is pale-box's own; use another number "
				       "from 32 to 511",
				       s->where, want);
		if (dup3(fds[used], want, O_CLOEXEC) < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, errno,
				       "%s: cannot take descriptor %d", s->where, want);
		close_fd(&fds[used++]);
	}
	return 0;
}

static int serve(int caller, struct pale_err *err)
{
	_cleanup_(request_done) struct request q = {.text = BUF_INIT(WIRE_MAX)};
	_cleanup_free_ char *cwd = NULL;
	struct wire_packet p;
	struct box_run b = {0};
	struct plan_request request;
	struct supervise_session session = {.ready = on_ready};
	struct pale_result *result = NULL;
	int fds[WIRE_MAX_FDS];
	size_t nfds = 0, used = 1;
	ssize_t n = fd_recv(WIRE_FD, &p, sizeof(p), fds, WIRE_MAX_FDS, &nfds);
	int r;

	if (n != (ssize_t)sizeof(p) || p.magic != WIRE_MAGIC || p.version != WIRE_VERSION ||
	    p.kind != WIRE_RUN || nfds < 1)
		return malformed(err);
	/* Its caller may have no child of this kind: it goes on as nobody's. */
	if (p.flags & WIRE_SESSION && fork() != 0)
		_exit(0);
	b.options = (struct pale_run_options){
		.size = sizeof(b.options),
		.use_fds = true,
		.in = -1,
		.out = -1,
		.err = -1,
		.keep_output = p.flags & WIRE_KEEP,
		.ordered = p.flags & WIRE_ORDERED,
		.on_event = p.flags & WIRE_EVENTS ? on_event : NULL,
		.arg = &b,
	};
	if (p.flags & WIRE_IN && used < nfds)
		b.options.in = fds[used++];
	if (p.flags & WIRE_OUT && used < nfds)
		b.options.out = fds[used++];
	if (p.flags & WIRE_ERR && used < nfds)
		b.options.err = fds[used++];
	r = get_request(fds[0], &q, err);
	close_fd(&fds[0]);
	if (r == 0)
		r = place_secrets(&q.policy->model->network, fds + used, nfds - used, err);
	if (r < 0)
		return r;
	b.options.base_policy = q.base;
	q.command.tty = p.flags & WIRE_TTY;
	r = api_request(q.policy, &q.command, b.options.ordered, &request, &cwd, err);
	request.session = p.flags & WIRE_SESSION;
	session.name = q.session;
	if (r == 0 && p.flags & WIRE_POOL) {
		r = api_pool_here(q.policy, &request, &b.options, (unsigned)p.value, on_ready, err);
		return b.gone || r > 0 ? 0 : r;
	}
	if (r == 0)
		r = api_run_here(q.policy, &request, &b.options, request.session ? &session : NULL,
				 WIRE_FD, caller, on_id, &result, err);
	if (b.gone) {
		pale_result_free(result);
		return 0;
	}
	if (r < 0)
		return r;
	/* The box is dead: now there is time to wait for the caller. */
	(void)!flush(&b.queue, 0);
	(void)!send_result(result, err);
	pale_result_free(result);
	return 0;
}

int main(void)
{
	struct pale_err err = {0};
	int type;
	socklen_t len = sizeof(type);
	pid_t caller;
	int pidfd;

	if (getsockopt(WIRE_FD, SOL_SOCKET, SO_TYPE, &type, &len) < 0 || type != SOCK_SEQPACKET) {
		fprintf(stderr, "pale-box: started by programs that use libpale; see pale(1)\n");
		return 125;
	}
	fcntl(WIRE_FD, F_SETFD, FD_CLOEXEC);
	/* Should the caller be gone already, the socket says so, unless a fork of it has a copy. */
	caller = getppid();
	pidfd = pidfd_open(caller, 0);
	if (pidfd < 0 || getppid() != caller)
		return 125;
	if (serve(pidfd, &err) < 0)
		send_error(&err);
	return 0;
}
