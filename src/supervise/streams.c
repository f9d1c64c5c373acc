/* Standard streams: see streams.h. In the supervisor; hostile: all bytes that the box writes. */
#include "streams.h"

#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/fd.h"

#define STAGE	    "supervise"
#define BUFFER	    65536
#define BLOCKING    4096 /* PIPE_BUF: what a descriptor that polls writable takes without waiting */
#define MAX_AT_ONCE 16	 /* buffers moved before the other events get their turn */

/* A descriptor of the caller's that we write to. */
struct sink {
	int fd;			  /* borrowed, or our own non-blocking one */
	bool own, socket, always; /* always: a file, which is never waited for */
};

/* One direction. */
struct pump {
	struct streams *streams;
	enum output_stream stream;
	int from;
	bool from_file; /* the caller's input is a file: it cannot be waited for, and need not be */
	struct sink to;
	struct event *readable, *writable;
	size_t at, len; /* what is read and not yet written */
	bool ended;
	char data[BUFFER];
};

struct streams {
	struct streams_config c;
	struct pump *pumps[3]; /* in, out, err; NULL: none */
	bool box_ended;
	int error; /* why output was lost, the first time; 0: it was not */
	bool tty;
};

static void pump_close_from(struct pump *p)
{
	if (p->readable)
		event_free(p->readable);
	p->readable = NULL;
	if (p != p->streams->pumps[0])
		close_fd(&p->from);
	p->from = -1;
}

/* A reader who has gone wants no more. */
static void note_error(struct pump *p, int error)
{
	if (p != p->streams->pumps[0] && error != EPIPE && error != ECONNRESET &&
	    !p->streams->error)
		p->streams->error = error;
}

static void pump_end(struct pump *p)
{
	p->ended = true;
	p->len = p->at = 0;
	pump_close_from(p);
	if (p->writable)
		event_free(p->writable);
	p->writable = NULL;
	/* The end of input is told to a pty by its end-of-file character, to a pipe by closing it.
	 */
	if (p == p->streams->pumps[0] && p->to.own)
		close_fd(&p->to.fd);
}

/* Waits for its turn; what cannot be waited for is lost. */
static void await(struct pump *p, struct event *e)
{
	if (event_add(e, NULL) == 0)
		return;
	note_error(p, ENOMEM);
	pump_end(p);
}

/* Writes what can be written now. 0: all is written; 1: the sink is full; negative: the reader is
 * gone. */
static int pump_write(struct pump *p)
{
	while (p->at < p->len) {
		size_t want = p->len - p->at;
		ssize_t n;

		if (p->to.fd < 0) {
			p->at = p->len;
			break;
		}
		if (p->to.socket) {
			n = send(p->to.fd, p->data + p->at, want, MSG_DONTWAIT | MSG_NOSIGNAL);
		} else {
			if (!p->to.own && !p->to.always) {
				struct pollfd poll_one = {p->to.fd, POLLOUT, 0};

				if (poll(&poll_one, 1, 0) == 0)
					return 1;
				if (want > BLOCKING)
					want = BLOCKING;
			}
			n = write(p->to.fd, p->data + p->at, want);
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			note_error(p, errno);
		if (n < 0)
			return errno == EAGAIN ? 1 : -errno;
		p->at += (size_t)n;
	}
	p->at = p->len = 0;
	return 0;
}

static int pump_read(struct pump *p);

/* Takes what a stream holds now, as far as its sink takes it. What is behind a full sink stays in
 * the pipe, and in order. What is written meanwhile is not waited for: one who never stops writing
 * would keep us here. */
static void drain(struct pump *p)
{
	int waiting = 0;

	if (!p || p->ended || ioctl(p->from, FIONREAD, &waiting) < 0)
		return;
	while (waiting > 0 && pump_write(p) == 0 && pump_read(p) > 0)
		waiting -= (int)p->len;
	if (pump_write(p) > 0 && p->writable)
		await(p, p->writable);
}

/* Reads once. 1: something came; 0: nothing now; -1: the end. */
static int pump_read(struct pump *p)
{
	ssize_t n;

	/* The caller's descriptor blocks, and its flags are not ours to change: a read too many
	 * would stop the supervisor, and with it every limit. */
	if (p == p->streams->pumps[0] && !p->from_file) {
		struct pollfd one = {p->from, POLLIN, 0};

		if (poll(&one, 1, 0) == 0)
			return 0;
	}
	do
		n = read(p->from, p->data, sizeof(p->data));
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return p->streams->box_ended && p != p->streams->pumps[0] ? -1 : 0;
	/* A pty's master says EIO when the last slave is closed. */
	if (n < 0 && !(p->streams->tty && errno == EIO))
		note_error(p, errno);
	if (n <= 0)
		return -1;
	p->len = (size_t)n;
	p->at = 0;
	if (p != p->streams->pumps[0])
		p->streams->c.data(p->streams->c.arg, p->stream, p->data, p->len);
	return 1;
}

static void pump_run(struct pump *p)
{
	for (int i = 0; i < MAX_AT_ONCE && !p->ended; i++) {
		int r = pump_write(p);

		if (r < 0) {
			/* As for an ordinary program: its next write fails with EPIPE. */
			pump_end(p);
			break;
		}
		if (r > 0) {
			if (p->readable)
				event_del(p->readable);
			await(p, p->writable);
			if (!p->ended)
				return;
			break;
		}
		r = pump_read(p);
		if (r < 0)
			pump_end(p);
		if (r == 0)
			break;
	}
	if (!p->ended && p->from_file)
		await(p, p->writable);
	else if (!p->ended && p->readable)
		await(p, p->readable);
	if (p->ended)
		p->streams->c.progress(p->streams->c.arg);
}

static void on_event(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	pump_run(arg);
}

/* Our own non-blocking description of what the caller's descriptor stands for, so that the caller's
 * flags stay as they are; where that cannot be had we poll before each small write. */
static struct sink sink_for(int fd)
{
	struct sink s = {.fd = fd};
	char path[48];
	struct stat st = {0};
	int own;

	if (fd < 0 || (fstat(fd, &st) < 0 && errno == EBADF)) {
		s.fd = -1;
		return s;
	}
	s.socket = S_ISSOCK(st.st_mode);
	s.always = S_ISREG(st.st_mode) || S_ISBLK(st.st_mode);
	if (s.socket || s.always)
		return s;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (own >= 0) {
		s.fd = own;
		s.own = true;
	}
	return s;
}

static int pump_new(struct streams *s, int n, int from, struct sink to, struct pale_err *err)
{
	struct pump *p = calloc(1, sizeof(*p));
	struct stat st;

	if (!p)
		return err_nomem(err, STAGE);
	s->pumps[n] = p;
	p->streams = s;
	p->stream = n == 2 ? OUTPUT_STDERR : OUTPUT_STDOUT;
	p->from = from;
	p->to = to;
	/* Nor can /dev/null and its like be waited for. */
	p->from_file = n == 0 && fstat(from, &st) == 0 &&
		       (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode) ||
			(S_ISCHR(st.st_mode) && !isatty(from)));
	if (!p->from_file) {
		p->readable = event_new(s->c.base, from, EV_READ, on_event, p);
		if (!p->readable || event_add(p->readable, NULL) < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, 0, "cannot wait for the %s",
				       n == 0 ? "input: it is a directory or closed" : "output");
	}
	if (to.fd >= 0 && !to.always) {
		p->writable = event_new(s->c.base, to.fd, EV_WRITE, on_event, p);
		if (!p->writable)
			return err_nomem(err, STAGE);
	}
	if (p->from_file && (!p->writable || event_add(p->writable, NULL) < 0))
		return err_set(err, PALE_E_SYSTEM, STAGE, 0, "cannot pass the input on");
	return 0;
}

/* A read that waits would stop the supervisor, and with it every limit. */
static int no_waiting(int fd, struct pale_err *err)
{
	int r = fd_set_nonblock(fd, true);

	return r < 0 ? err_set(err, PALE_E_SYSTEM, STAGE, -r, "cannot set up the box's streams")
		     : 0;
}

int streams_new(const struct streams_config *c, struct streams **ret, struct pale_err *err)
{
	struct streams *s = calloc(1, sizeof(*s));
	struct box *box = c->box;
	int r = 0;

	if (!s)
		return err_nomem(err, STAGE);
	s->c = *c;
	*ret = s;
	if (box->tty_fd >= 0) {
		int in = fcntl(box->tty_fd, F_DUPFD_CLOEXEC, 3);

		s->tty = true;
		r = no_waiting(box->tty_fd, err);
		if (r == 0)
			r = pump_new(s, 1, take_fd(&box->tty_fd), sink_for(c->out), err);
		if (r == 0 && c->in >= 0 && in >= 0)
			r = pump_new(s, 0, c->in, (struct sink){.fd = in, .own = true}, err);
		else
			close_fd(&in);
		return r;
	}
	r = no_waiting(box->stdin_fd, err);
	if (r == 0)
		r = no_waiting(box->stdout_fd, err);
	if (r == 0)
		r = no_waiting(box->stderr_fd, err);
	if (r < 0)
		return r;
	if (c->in >= 0)
		r = pump_new(s, 0, c->in, (struct sink){.fd = take_fd(&box->stdin_fd), .own = true},
			     err);
	else
		close_fd(&box->stdin_fd);
	if (r == 0)
		r = pump_new(s, 1, take_fd(&box->stdout_fd), sink_for(c->out), err);
	if (r == 0)
		r = pump_new(s, 2, take_fd(&box->stderr_fd), sink_for(c->err), err);
	return r;
}

void streams_free(struct streams *s)
{
	for (int i = 0; s && i < 3; i++) {
		struct pump *p = s->pumps[i];

		if (!p)
			continue;
		pump_end(p);
		if (p->to.own)
			close_fd(&p->to.fd);
		free(p);
	}
	free(s);
}

void streams_before_write(struct streams *s)
{
	/* Of one writer there is at most one write that was not drained, so the order of the two
	 * does not matter here. */
	drain(s->pumps[1]);
	drain(s->pumps[2]);
}

void streams_box_ended(struct streams *s)
{
	s->box_ended = true;
	if (s->pumps[0] && !s->pumps[0]->ended)
		pump_end(s->pumps[0]);
	for (int i = 1; i < 3; i++)
		if (s->pumps[i] && !s->pumps[i]->ended)
			pump_run(s->pumps[i]);
}

bool streams_done(const struct streams *s)
{
	return (!s->pumps[1] || s->pumps[1]->ended) && (!s->pumps[2] || s->pumps[2]->ended);
}

int streams_error(const struct streams *s)
{
	return s ? s->error : 0;
}

void streams_abandon(struct streams *s)
{
	for (int i = 0; i < 3; i++)
		if (s->pumps[i] && !s->pumps[i]->ended)
			pump_end(s->pumps[i]);
}

int streams_tty(const struct streams *s)
{
	return s->tty && s->pumps[1] ? s->pumps[1]->from : -1;
}
