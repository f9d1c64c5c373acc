/* The door: see door.h. In the supervisor, in its event loop, with the caller's privileges.
 *
 * Only its owner can come near the socket: its directory is the owner's alone. Who connects is
 * asked for all the same, and what is sent is hostile: a line is bounded, an answer is made only
 * when the last one was taken, so that a front that never reads costs one answer, and nothing here
 * waits. Nobody at the door can keep the supervisor from its box. */
#include "supervise/door.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "audit/audit.h"
#include "base/fd.h"
#include "base/str.h"
#include "supervise/runtime.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* 6.5 */
#endif

#define STAGE	    "supervise"
#define PROGRESS_S  10 /* a line that was begun, or an answer, has to get on within this time */
#define LOOK_S	    2
#define AGAIN_S	    1  /* after no more descriptors could be had */
#define REFUSED_MAX 16 /* events of refused ones */
#define READ_SIZE   16384
#define READ_LARGE  262144 /* of a request that is long already */
#define IN_MAX	    (CONTROL_REQUEST_MAX + READ_LARGE + 1)
#define KEEP_SIZE   65536 /* of a buffer, between requests */

enum phase {
	READING,
	WAITING,   /* for another's change to end */
	ANSWERING, /* its change is under way */
	WRITING,
};

struct client {
	TAILQ_ENTRY(client) entry; /* the one that was idle for longest comes first */
	struct door *door;
	int fd;
	struct event *readable, *writable;
	struct event *look; /* while an answer is under way: is it still there? */
	enum phase phase;
	struct live_who who;
	struct buf in, out;
	size_t scanned; /* of what came in: there is no newline in that much */
	size_t written;
	struct control_request request; /* while it waits */
	bool close_after;		/* the answer */
};

struct door {
	struct door_config config;
	struct runtime place;
	int fd;
	struct event *listener, *again;
	TAILQ_HEAD(, client) clients;
	size_t n;
	unsigned refused;
};

/* ---- one client ---- */

static void client_free(struct client *c)
{
	struct door *d = c->door;

	if (d->config.live)
		live_forget(d->config.live, c);
	if (d->config.session)
		session_forget(d->config.session, c);
	if (d->config.files.inside)
		inside_forget(d->config.files.inside, c);
	TAILQ_REMOVE(&d->clients, c, entry);
	d->n--;
	if (c->readable)
		event_free(c->readable);
	if (c->writable)
		event_free(c->writable);
	if (c->look)
		event_free(c->look);
	close_fd(&c->fd);
	control_request_done(&c->request);
	buf_done(&c->in);
	buf_done(&c->out);
	free(c);
}

static char *find_line(struct client *c)
{
	char *newline = c->in.len > c->scanned
				? memchr(c->in.data + c->scanned, '\n', c->in.len - c->scanned)
				: NULL;

	c->scanned = newline ? (size_t)(newline - c->in.data) : c->in.len;
	return newline;
}

/* Waits for more of a request: without end, if none was begun. One that is there already gets its
 * turn after the box. The client may be gone afterwards. */
static void wait_for_line(struct client *c)
{
	static const struct timeval progress = {.tv_sec = PROGRESS_S};

	c->phase = READING;
	/* It would wait for ever for an answer to what nobody reads. */
	if (event_add(c->readable, c->in.len ? &progress : NULL) < 0) {
		client_free(c);
		return;
	}
	if (find_line(c))
		event_active(c->readable, EV_READ, 1);
}

/* Goes on with the answer; the client may be gone afterwards. */
static void write_some(struct client *c)
{
	static const struct timeval progress = {.tv_sec = PROGRESS_S};

	while (c->written < c->out.len) {
		ssize_t n = send(c->fd, c->out.data + c->written, c->out.len - c->written,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			c->phase = WRITING;
			if (event_add(c->writable, &progress) < 0)
				client_free(c);
			return;
		}
		if (n < 0) {
			client_free(c);
			return;
		}
		c->written += (size_t)n;
	}
	buf_done(&c->out);
	c->out = BUF_INIT(CONTROL_REPLY_MAX);
	c->written = 0;
	if (c->close_after) {
		client_free(c);
		return;
	}
	/* It is not idle: it goes behind those that are. */
	TAILQ_REMOVE(&c->door->clients, c, entry);
	TAILQ_INSERT_TAIL(&c->door->clients, c, entry);
	wait_for_line(c);
}

static void answer(struct client *c, json_t *result, enum control_code code,
		   const struct pale_err *err)
{
	const json_t *id = c->request.id;
	int r = result ? control_reply(&c->out, id, result) : control_error(&c->out, id, code, err);

	event_del(c->look);

	if (r < 0) {
		struct pale_err e;

		c->out.len = 0;
		err_set(&e, PALE_E_SYSTEM, STAGE, 0, "the answer is too long");
		r = control_error(&c->out, id, CONTROL_FAILED, &e);
		c->close_after = true;
	}
	control_request_done(&c->request);
	if (r < 0)
		client_free(c);
	else
		write_some(c);
}

/* ---- commands ---- */

static const struct door_command *find(const char *name)
{
	for (const struct door_command *c = door_commands; c->name; c++)
		if (strcmp(c->name, name) == 0)
			return c;
	return NULL;
}

static void unknown_command(struct client *c)
{
	struct pale_err err;

	err_set(&err, PALE_E_USAGE, STAGE, 0,
		"there is no command %s; there are:", QUOTED(c->request.command));
	for (const struct door_command *k = door_commands; k->name; k++)
		err_add(&err, "%s %s", k == door_commands ? "" : ",", k->name);
	answer(c, NULL, CONTROL_UNKNOWN_COMMAND, &err);
}

static void run_command(struct client *c)
{
	static const struct timeval look_time = {.tv_sec = LOOK_S};
	struct door *d = c->door;
	const struct door_command *command = find(c->request.command);
	struct door_call call = {.client = c,
				 .config = &d->config,
				 .who = c->who,
				 .arguments = c->request.arguments,
				 .code = CONTROL_FAILED};
	struct pale_err err = {0};
	json_t *result = NULL;
	int r;

	if (!command) {
		unknown_command(c);
		return;
	}
	if (!(command->states & d->config.state(d->config.arg))) {
		if (d->config.state(d->config.arg) == DOOR_HELD)
			err_set(&err, PALE_E_CONFLICT, STAGE, 0,
				"the box is a pool's, and nobody's yet: %s comes too early",
				command->name);
		else
			err_set(&err, PALE_E_CONFLICT, STAGE, 0,
				"the box has ended: %s comes too late", command->name);
		answer(c, NULL, CONTROL_STATE, &err);
		return;
	}
	/* Before it is called: the answer may come while it is. */
	c->phase = ANSWERING;
	event_add(c->look, &look_time);
	r = command->run(&call, &result, &err);
	if (r == DOOR_AGAIN)
		c->phase = WAITING;
	else if (r != DOOR_LATER)
		answer(c, r < 0 ? NULL : result, call.code, &err);
}

void door_answer(void *client, json_t *result, const struct pale_err *err)
{
	struct client *c = client;
	struct door *d = c->door;

	answer(c, result, result ? CONTROL_FAILED : control_code_of(err), err);
	door_again(d);
}

void door_again(struct door *d)
{
	struct client *c, *next;

	/* Whoever finds that another has it in hand waits on. */
	for (c = TAILQ_FIRST(&d->clients); c; c = next) {
		next = TAILQ_NEXT(c, entry);
		if (c->phase == WAITING)
			run_command(c);
	}
}

const struct door_config *door_config_of(void *client)
{
	const struct client *c = client;

	return &c->door->config;
}

/* ---- reading ---- */

/* What is not even a line leaves no way to tell where the next one begins. */
static void on_line(struct client *c, const char *line, size_t len)
{
	enum control_code code = CONTROL_FAILED;
	struct pale_err err;

	if (control_parse(line, len, &c->request, &code, &err) == 0) {
		run_command(c);
		return;
	}
	c->close_after = code == CONTROL_MALFORMED || code == CONTROL_FAILED;
	answer(c, NULL, code, &err);
}

/* The next whole line, if there is one; the client may be gone afterwards. */
static void take_line(struct client *c)
{
	char *newline = find_line(c);
	_cleanup_free_ char *line = NULL;
	size_t len;

	if (!newline && c->in.len > CONTROL_REQUEST_MAX) {
		struct pale_err err;

		err_set(&err, PALE_E_USAGE, STAGE, 0, "a request has at most %u bytes",
			CONTROL_REQUEST_MAX);
		c->close_after = true;
		c->in.len = c->scanned = 0;
		answer(c, NULL, CONTROL_MALFORMED, &err);
		return;
	}
	if (!newline) {
		wait_for_line(c);
		return;
	}
	len = (size_t)(newline - c->in.data);
	line = malloc(len + 1);
	if (!line) {
		client_free(c);
		return;
	}
	memcpy(line, c->in.data, len);
	c->in.len -= len + 1;
	memmove(c->in.data, newline + 1, c->in.len);
	c->scanned = 0;
	if (!c->in.len && c->in.cap > KEEP_SIZE) {
		buf_done(&c->in);
		c->in = BUF_INIT(IN_MAX);
	}
	on_line(c, line, len);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct client *c = arg;
	size_t size = c->in.len < KEEP_SIZE ? READ_SIZE : READ_LARGE;
	char *to;
	ssize_t n;

	if (find_line(c)) {
		take_line(c);
		return;
	}
	to = buf_room(&c->in, size);
	if ((what & EV_TIMEOUT) || !to) {
		client_free(c);
		return;
	}
	n = recv(fd, to, size, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		wait_for_line(c);
		return;
	}
	if (n <= 0) {
		client_free(c);
		return;
	}
	c->in.len += (size_t)n;
	take_line(c);
}

/* One that has closed its connection altogether waits for nothing; one that has only said all that
 * it has to say does. */
static void on_look(evutil_socket_t fd, short what, void *arg)
{
	struct client *c = arg;
	struct pollfd p = {c->fd, 0, 0};

	(void)fd;
	(void)what;
	if (poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR))
		client_free(c);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct client *c = arg;

	(void)fd;
	if (what & EV_TIMEOUT)
		client_free(c);
	else
		write_some(c);
}

/* ---- who comes ---- */

static void read_program(pid_t pid, char out[static 16])
{
	char path[48];
	_cleanup_close_ int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, out, 15);
	out[n > 0 ? n : 0] = '\0';
	out[strcspn(out, "\n")] = '\0';
}

/* Is the process in the process namespace in which we are, and not in one below it, as all of a
 * box's are? For whoever cannot be seen, the answer is no. */
static bool is_outside(pid_t pid)
{
	char path[48], text[2048], *line, *numbers;
	_cleanup_close_ int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : fd_read_full(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	line = strstr(text, "\nNSpid:\t");
	if (!line)
		return false;
	numbers = line + strlen("\nNSpid:\t");
	numbers[strcspn(numbers, "\n")] = '\0';
	return *numbers && !strpbrk(numbers, "\t ");
}

/* A descriptor of the process itself, whose number another one cannot have while it is there;
 * -ENOPROTOOPT: the kernel is older than 6.5. */
static int open_peer(int fd)
{
	socklen_t len = sizeof(int);
	int pidfd;

	return getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) < 0 ? -errno : pidfd;
}

/* EPERM: it is there, and another's. */
static bool is_there(int pidfd)
{
	return syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) == 0 || errno == EPERM;
}

/* Why it may not come in; NULL: it may. */
static const char *refusal(int fd, struct live_who *ret)
{
	_cleanup_close_ int process = -1;
	struct ucred peer;
	socklen_t len = sizeof(peer);
	bool outside;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return "it cannot be told who it is";
	ret->uid = peer.uid;
	ret->pid = peer.pid;
	process = open_peer(fd);
	read_program(peer.pid, ret->program);
	outside = is_outside(peer.pid);
	if (peer.uid != geteuid() && peer.uid != 0)
		return "it is another user's box";
	/* What was read of the number is another's if its process is gone. */
	if (process != -ENOPROTOOPT && (process < 0 || !is_there(process)))
		return "it is gone";
	if (!outside)
		return "it comes from within a container or a box";
	return NULL;
}

/* One line, if it fits, and no more: whoever is refused is not waited for. */
static void turn_away(int fd, enum control_code code, const char *why)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct pale_err err;

	err_set(&err, PALE_E_HOST, STAGE, 0, "%s", why);
	if (control_error(&b, NULL, code, &err) == 0)
		(void)!send(fd, b.data, b.len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void put_on_record(struct door *d, const struct live_who *who, const char *why)
{
	if (d->refused++ >= REFUSED_MAX)
		return;
	d->config.refused(d->config.arg,
			  json_pack("{s:I, s:I, s:o, s:s}", "uid", (json_int_t)who->uid, "pid",
				    (json_int_t)who->pid, "program",
				    audit_text(who->program, strlen(who->program), 16), "why",
				    why));
}

/* Whoever has asked nothing for longest, and of whom nothing is half done. */
static bool make_room(struct door *d)
{
	struct client *c;

	if (d->n < DOOR_CLIENTS)
		return true;
	TAILQ_FOREACH(c, &d->clients, entry)
	{
		if (c->phase != READING || c->in.len)
			continue;
		client_free(c);
		return true;
	}
	return false;
}

/* Takes the descriptor over. */
static void admit(struct door *d, int fd, const struct live_who *who)
{
	struct client *c = calloc(1, sizeof(*c));

	if (!c) {
		close_fd(&fd);
		return;
	}
	*c = (struct client){.door = d,
			     .fd = fd,
			     .who = *who,
			     .in = BUF_INIT(IN_MAX),
			     .out = BUF_INIT(CONTROL_REPLY_MAX)};
	TAILQ_INSERT_TAIL(&d->clients, c, entry);
	d->n++;
	c->readable = event_new(d->config.base, fd, EV_READ, on_readable, c);
	c->writable = event_new(d->config.base, fd, EV_WRITE, on_writable, c);
	c->look = event_new(d->config.base, -1, EV_PERSIST, on_look, c);
	if (!c->readable || !c->writable || !c->look)
		client_free(c);
	else
		wait_for_line(c);
}

void door_admit(struct door *d, int fd)
{
	_cleanup_close_ int their = fd;
	struct live_who who = {0};
	const char *why = refusal(their, &who);

	if (why) {
		put_on_record(d, &who, why);
		turn_away(their, CONTROL_REFUSED, why);
	} else if (!make_room(d)) {
		turn_away(their, CONTROL_BUSY, "too many are being served: try again");
	} else {
		admit(d, take_fd(&their), &who);
	}
}

static void on_knock(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval again = {.tv_sec = AGAIN_S};
	struct door *d = arg;

	(void)what;
	/* The box gets its turn, however many there are. */
	for (int i = 0; i < 16; i++) {
		_cleanup_close_ int their = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (their < 0 &&
		    (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
			event_del(d->listener);
			event_add(d->again, &again);
			return;
		}
		if (their < 0)
			return;
		door_admit(d, take_fd(&their));
	}
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval again = {.tv_sec = AGAIN_S};
	struct door *d = arg;

	(void)fd;
	(void)what;
	if (event_add(d->listener, NULL) < 0)
		event_add(d->again, &again);
}

/* ---- the socket ---- */

static int listen_at(struct door *d, struct pale_err *err)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};

	runtime_socket_name(d->place.dir, at.sun_path);
	d->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (d->fd < 0 || bind(d->fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    listen(d->fd, DOOR_CLIENTS) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno,
			       "cannot make the box's control socket in %s", QUOTED(d->place.path));
	return 0;
}

int door_new(const struct door_config *config, struct door **ret, struct pale_err *err)
{
	struct door *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return err_nomem(err, STAGE);
	d->config = *config;
	d->place = RUNTIME_NONE;
	d->fd = -1;
	TAILQ_INIT(&d->clients);
	r = runtime_make(config->id, config->run_fd, &d->place, err);
	if (r == 0)
		r = listen_at(d, err);
	if (r == 0) {
		d->listener = event_new(config->base, d->fd, EV_READ | EV_PERSIST, on_knock, d);
		d->again = event_new(config->base, -1, 0, on_again, d);
		if (!d->listener || !d->again || event_add(d->listener, NULL) < 0)
			r = err_nomem(err, STAGE);
	}
	if (r < 0)
		door_free(d);
	else
		*ret = d;
	return r;
}

void door_shut(struct door *d)
{
	while (!TAILQ_EMPTY(&d->clients))
		client_free(TAILQ_FIRST(&d->clients));
	if (d->listener)
		event_free(d->listener);
	if (d->again)
		event_free(d->again);
	d->listener = d->again = NULL;
	close_fd(&d->fd);
	runtime_remove(&d->place);
}

void door_free(struct door *d)
{
	if (!d)
		return;
	door_shut(d);
	runtime_done(&d->place);
	free(d);
}
