/* Starting, configuring and hearing the egress broker: see egress.h.
 *
 * In the supervisor, with the caller's privileges. The broker is ours when it starts and reads
 * hostile bytes from then on, so what it says is checked as if the box had said it: lengths, values
 * of enumerations, indices, and that strings end within their arrays. */
#include "supervise/egress.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/sanitized.h"
#include "base/str.h"
#include "supervise/secrets.h"

#define STAGE	       "supervise"
#define READY_TIME_MS  20000
#define FINISH_TIME_MS 3000
#define DEATH_TIME_MS  500
#define SEND_TIME_S    1
/* Twice of what a broker that keeps to event.c tells at most, and of what it may tell at once. */
#define EVENTS_PER_S   4096
#define EVENTS_BURST   8192
#define ID_BASE	       0x6f000000U /* below the boxes' ranges; a process number comes on top */
#define NOBODY	       65534	   /* root of a container has no others to give */

struct broker {
	const struct plan *plan;
	pid_t pid;
	int pidfd, sock, theirs;
	bool ended;
	bool finishing; /* it was told to end, and may be gone */
	char **placeholders;
	char *ca;
	char program[PATH_MAX];
	size_t nrules, most_rules;    /* in force; and since the start */
	unsigned changing;	      /* rules that it was sent and has not taken over */
	uint64_t events_milli;	      /* that it may tell, in thousandths */
	uint64_t events_us;	      /* when that was filled up */
	uint64_t cpu_from_us, cpu_us; /* processor time when it was ready, and as last seen */
	char stack[16384] __attribute__((aligned(16)));
};

/* Nobody else could have put it there. */
static bool is_ours(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
	       (st.st_uid == geteuid() || st.st_uid == 0) && !(st.st_mode & 022);
}

/* As told (tests), beside an installed or a built program of ours, or where it was to be installed.
 */
static void find_program(char out[static PATH_MAX])
{
	static const char *const beside[] = {"../libexec/pale/pale-egress", "../pale-egress",
					     "pale-egress"};
	const char *told = secure_getenv("PALE_EGRESS_PROGRAM");
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (told && *told == '/') {
		snprintf(out, PATH_MAX, "%s", told);
		return;
	}
	self[n > 0 ? n : 0] = '\0';
	slash = strrchr(self, '/');
	for (size_t i = 0; slash && i < ARRAY_SIZE(beside); i++) {
		int len = snprintf(out, PATH_MAX, "%.*s/%s", (int)(slash - self), self, beside[i]);

		if (len < PATH_MAX && access(out, X_OK) == 0 && is_ours(out))
			return;
	}
	snprintf(out, PATH_MAX, "%s/pale-egress", PALE_LIBEXECDIR);
}

/* In the child, which shares our memory until the exec and has a stack of its own: system calls
 * only. Its end of the socket becomes descriptor 0, and nothing of our environment goes along,
 * which may hold secrets. A session of its own: Ctrl-C is for the supervisor, which then ends it.
 */
static int become(void *arg)
{
	static char name[] = "pale-egress";
	char *const argv[] = {name, NULL}, *const envp[] = {NULL};
	struct broker *b = arg;
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && dup2(b->theirs, STDIN_FILENO) == STDIN_FILENO)
		execve(b->program, argv, envp);
	_exit(127);
}

int broker_start(const struct plan *plan, struct broker **ret, struct pale_err *err)
{
	const struct timeval most = {.tv_sec = SEND_TIME_S};
	char program[PATH_MAX];
	struct broker *b;
	int pair[2], r;

	find_program(program);
	if (access(program, X_OK) < 0) {
		err_set(err, PALE_E_HOST, STAGE, errno,
			"cannot run %s, the broker that network.allow needs", QUOTED(program));
		err_add(err, "; it is installed with Pale (./dev install)");
		return -PALE_E_HOST;
	}
	b = calloc(1, sizeof(*b));
	if (!b)
		return err_nomem(err, STAGE);
	b->plan = plan;
	b->pid = b->pidfd = b->sock = b->theirs = -1;
	memcpy(b->program, program, sizeof(program));
	broker_changed(b, plan->network->nrules);
	*ret = b;
	r = secrets_placeholders(plan->network, &b->placeholders, err);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make the broker's socket");
	b->sock = pair[0];
	b->theirs = pair[1];
	/* Nor does one that does not read keep us from going on. */
	if (setsockopt(b->sock, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make the broker's socket");
	/* Nobody waits for it: dup2() onto itself would leave it close-on-exec. */
	if (b->theirs == STDIN_FILENO) {
		b->theirs = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
		close(STDIN_FILENO);
	}
	/* Not vfork(): while the kernel loads the program, the box is begun. */
	b->pid = clone(become, b->stack + sizeof(b->stack), CLONE_BESIDE | CLONE_PIDFD | SIGCHLD, b,
		       &b->pidfd);
	r = errno;
	/* Its own copy stays open; the number it has to read from here. */
	if (b->theirs >= 0)
		close(b->theirs);
	return b->pid < 0
		       ? err_set(err, PALE_E_SYSTEM, STAGE, r, "cannot start %s", QUOTED(program))
		       : 0;
}

const char *const *broker_placeholders(const struct broker *b)
{
	return b ? (const char *const *)b->placeholders : NULL;
}

/* What it failed with comes before the end of its socket. */
static int fail_sending(struct broker *b, int sys, struct pale_err *err)
{
	if (sys == EPIPE || sys == ECONNRESET)
		return broker_ready(b, err);
	return err_set(err, PALE_E_SYSTEM, STAGE, sys, "cannot speak to the broker");
}

static int say(struct broker *b, enum egress_kind kind, const int *fds, size_t n,
	       struct pale_err *err)
{
	struct egress_message m = {.kind = kind};
	int r = fd_send(b->sock, &m, sizeof(m), fds, n);

	return r < 0 ? fail_sending(b, -r, err) : 0;
}

/* Public keys. */
static int write_known_hosts(const struct plan *plan, int fd)
{
	json_t *o = json_pack("{ss}", "known_hosts", plan->known_hosts);
	_cleanup_free_ char *text = o ? json_dumps(o, JSON_EMBED) : NULL;
	int r = text ? fd_write_all(fd, ",", 1) : -ENOMEM;

	json_decref(o);
	return r == 0 ? fd_write_all(fd, text, strlen(text)) : r;
}

/* See egress/config.h. Each of root's brokers has an id of its own, a number that nobody else runs
 * with, so that no two can touch each other. */
static int write_config(const struct broker *b, bool own_process, int fd, struct pale_err *err)
{
	const struct plan *plan = b->plan;
	_cleanup_free_ char *places = NULL;
	char text[256];
	int n = snprintf(text, sizeof(text), ",\"mode\":\"%s\",\"landlock\":%s",
			 plan->nft == NFT_TPROXY ? "tproxy" : "redirect",
			 plan->landlock ? "true" : "false"),
	    r;
	unsigned id = plan->user_range ? ID_BASE + (unsigned)b->pid : NOBODY;

	if (geteuid() == 0)
		n += snprintf(text + n, sizeof(text) - (size_t)n, ",\"uid\":%u,\"gid\":%u", id, id);
	r = policy_network_places(plan->network, &places, err);
	if (r < 0)
		return r;
	r = fd_write_all(fd, "{\"network\":", 11);
	if (r == 0)
		r = fd_write_all(fd, plan->network_text, strlen(plan->network_text));
	if (r == 0)
		r = fd_write_all(fd, ",\"places\":", 10);
	if (r == 0)
		r = fd_write_all(fd, places, strlen(places));
	if (r == 0 && plan->known_hosts)
		r = write_known_hosts(plan, fd);
	if (r == 0)
		r = fd_write_all(fd, text, (size_t)n);
	if (r == 0)
		r = fd_write_all(fd, ",\"secrets\":", 11);
	if (r == 0) {
		r = secrets_write(plan->network, b->placeholders, own_process, fd, err);
		if (r < 0)
			return r;
		r = fd_write_all(fd, "}", 1);
	}
	if (r == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		r = -errno;
	return r < 0 ? err_set(err, PALE_E_SYSTEM, STAGE, -r,
			       "cannot write the broker's configuration")
		     : 0;
}

int broker_configure(struct broker *b, bool own_process, struct pale_err *err)
{
	_cleanup_close_ int fd = memfd_create("pale-egress", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno,
			       "cannot make the broker's configuration");
	r = write_config(b, own_process, fd, err);
	return r == 0 ? say(b, EGRESS_CONFIG, &fd, 1, err) : r;
}

int broker_connect(struct broker *b, struct box *box, struct pale_err *err)
{
	int r = say(b, EGRESS_SOCKETS, box->egress_fds, EGRESS_NSOCKETS, err);

	for (size_t i = 0; i < EGRESS_NSOCKETS; i++)
		close_fd(&box->egress_fds[i]);
	box->has_egress = false;
	return r;
}

/* The one descriptor of the caller's agent that ever leaves this process. */
static int connect_agent(const char *path, struct pale_err *err)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un at = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(at.sun_path))
		return err_set(err, PALE_E_HOST, STAGE, ENAMETOOLONG,
			       "cannot connect to the ssh agent at SSH_AUTH_SOCK (%s)",
			       QUOTED(path));
	memcpy(at.sun_path, path, strlen(path));
	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		return err_set(err, PALE_E_HOST, STAGE, errno,
			       "cannot connect to the ssh agent at SSH_AUTH_SOCK (%s)",
			       QUOTED(path));
	return take_fd(&fd);
}

int broker_agent(struct broker *b, struct box *box, struct pale_err *err)
{
	_cleanup_close_ int upstream = -1;
	int r;

	if (!b->plan->agent_socket)
		return 0;
	upstream = connect_agent(b->plan->agent_socket, err);
	if (upstream < 0)
		return upstream;
	r = say(b, EGRESS_AGENT, (const int[]){box->agent_fd, upstream}, 2, err);
	close_fd(&box->agent_fd);
	return r;
}

static bool ends(const char *s, size_t size)
{
	return memchr(s, '\0', size) != NULL;
}

static bool event_sane(const struct broker *b, const struct egress_event *ev)
{
	return ev->outcome >= EGRESS_ALLOWED && ev->outcome <= EGRESS_EXFILTRATION &&
	       ev->what >= EGRESS_LOOKUP && ev->what <= EGRESS_AGENT_USE && ev->count > 0 &&
	       ev->count <= INT64_MAX && ev->bytes_in <= INT64_MAX && ev->bytes_out <= INT64_MAX &&
	       ev->duration_us <= INT64_MAX && ev->rule >= -1 &&
	       (ev->rule < 0 || (size_t)ev->rule < b->most_rules) &&
	       (ev->protocol & (ev->protocol - 1)) == 0 && ev->protocol <= NETWORK_UDP &&
	       ev->unfit <= 1 && ev->cut <= 1 && ends(ev->host, sizeof(ev->host)) &&
	       ends(ev->address, sizeof(ev->address)) && ends(ev->sni, sizeof(ev->sni)) &&
	       ends(ev->method, sizeof(ev->method)) && ends(ev->path, sizeof(ev->path)) &&
	       ends(ev->detail, sizeof(ev->detail));
}

/* By descriptor: the program that we are a library of may have waited for it, and its number be
 * another's. */
static void kill_it(const struct broker *b)
{
	syscall(SYS_pidfd_send_signal, b->pidfd, SIGKILL, NULL, 0);
}

/* Each event is a line of the log: a broker that tells more than it can have seen is not ours any
 * more. */
static bool too_much(struct broker *b)
{
	uint64_t now = clock_mono_us(), passed = now - b->events_us;

	if (passed > 10000000)
		passed = 10000000;
	b->events_us = now;
	b->events_milli += passed * EVENTS_PER_S / 1000;
	if (b->events_milli > EVENTS_BURST * 1000ULL)
		b->events_milli = EVENTS_BURST * 1000ULL;
	if (b->events_milli < 1000)
		return true;
	b->events_milli -= 1000;
	return false;
}

static int died(struct broker *b, struct pale_err *err)
{
	struct pollfd p = {b->pidfd, POLLIN, 0};
	siginfo_t info = {0};

	/* The end of its socket is not its own end: one that was taken over would have us wait. */
	if (!b->ended && poll(&p, 1, DEATH_TIME_MS) == 0)
		kill_it(b);
	if (!b->ended && waitid(P_PIDFD, (id_t)b->pidfd, &info, WEXITED) == 0)
		b->ended = true;
	if (info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED)
		return err_set(err, PALE_E_SYSTEM, STAGE, 0,
			       "the egress broker was killed by signal %d (%s)", info.si_status,
			       strsignal(info.si_status));
	return err_set(err, PALE_E_SYSTEM, STAGE, 0, "the egress broker %s (status %d)",
		       info.si_status == 127 ? "cannot be executed" : "ended", info.si_status);
}

/* 1: *m is a whole message; 0: none now; negative: no more of them. */
static int receive(struct broker *b, struct egress_message *m, struct pale_err *err)
{
	bool reset = false;
	ssize_t n;

	/* A broker that ends with something of ours unread leaves ECONNRESET, once, before what it
	 * said last: why it failed. */
	do {
		n = recv(b->sock, m, sizeof(*m), MSG_DONTWAIT | MSG_TRUNC);
		if (n < 0 && errno == ECONNRESET && !reset) {
			reset = true;
			errno = EINTR;
		}
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0 && b->finishing)
		return err_set(err, PALE_E_SYSTEM, STAGE, 0, "the egress broker has ended");
	if (n <= 0)
		return died(b, err);
	if (n != (ssize_t)sizeof(*m))
		return err_set(err, PALE_E_SYSTEM, STAGE, 0, "the egress broker makes no sense");
	if (m->kind == EGRESS_FAILED) {
		m->text[sizeof(m->text) - 1] = '\0';
		/* It goes to a terminal, and what was quoted is escaped already. */
		for (char *c = m->text; *c; c++)
			if (*c < ' ' || *c > '~')
				*c = '?';
		return err_set(err, PALE_E_SYSTEM, "egress", 0, "%.400s", m->text);
	}
	return 1;
}

/* Until until_us on the monotonic clock; false: it is past. */
static bool wait_for(const struct broker *b, uint64_t until_us)
{
	struct pollfd p = {b->sock, POLLIN, 0};
	uint64_t now = clock_mono_us();

	return now < until_us && poll(&p, 1, (int)((until_us - now) / 1000) + 1) != 0;
}

/* Of the whole process, by its clock, which anybody may read; 0 if it is gone. */
static uint64_t read_cpu_us(const struct broker *b)
{
	struct timespec t;
	clockid_t clock;

	if (b->pid <= 0 || clock_getcpuclockid(b->pid, &clock) != 0 || clock_gettime(clock, &t) < 0)
		return 0;
	/* While its number is not given to another, which the program that we are a library of can
	 * only do by waiting for it. */
	if (syscall(SYS_pidfd_send_signal, b->pidfd, 0, NULL, 0) < 0 && errno != EPERM)
		return 0;
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

uint64_t broker_cpu_us(struct broker *b)
{
	uint64_t now_us = b ? read_cpu_us(b) : 0;

	if (!b)
		return 0;
	if (now_us > b->cpu_from_us && now_us - b->cpu_from_us > b->cpu_us)
		b->cpu_us = now_us - b->cpu_from_us;
	return b->cpu_us;
}

int broker_ready(struct broker *b, struct pale_err *err)
{
	uint64_t until = clock_mono_us() + READY_TIME_MS * 1000ULL;

	while (wait_for(b, until)) {
		struct egress_message m;
		int r = receive(b, &m, err);

		if (r < 0)
			return r;
		if (r == 0)
			continue;
		if (m.kind == EGRESS_READY) {
			b->cpu_from_us = read_cpu_us(b);
			return 0;
		}
		if (m.kind != EGRESS_CA || b->ca || !ends(m.text, sizeof(m.text)))
			return err_set(err, PALE_E_SYSTEM, STAGE, 0,
				       "the egress broker makes no sense");
		b->ca = strdup(m.text);
		if (!b->ca)
			return err_nomem(err, STAGE);
	}
	return err_set(err, PALE_E_SYSTEM, STAGE, 0, "the egress broker was not ready after %d s",
		       READY_TIME_MS / 1000);
}

const char *broker_ca(const struct broker *b)
{
	return b->ca;
}

int broker_fd(const struct broker *b)
{
	return b->sock;
}

int broker_change(struct broker *b, int memfd, struct pale_err *err)
{
	int r = say(b, EGRESS_RULES, &memfd, 1, err);

	b->changing += r == 0;
	return r;
}

void broker_changed(struct broker *b, size_t nrules)
{
	b->nrules = nrules;
	if (nrules > b->most_rules)
		b->most_rules = nrules;
}

int broker_take(struct broker *b, struct broker_said *ret, struct pale_err *err)
{
	struct egress_message m;
	int r = receive(b, &m, err);

	if (r <= 0)
		return r;
	if (m.kind == EGRESS_TAKEN && b->changing)
		return BROKER_TAKEN;
	if (m.kind == EGRESS_READY && b->changing) {
		b->changing--;
		return BROKER_CHANGED;
	}
	if (m.kind == EGRESS_CONNECT) {
		ret->id = m.value;
		ret->index = m.connect.index;
		return BROKER_CONNECT;
	}
	if (m.kind != EGRESS_EVENT || !event_sane(b, &m.event))
		return err_set(err, PALE_E_SYSTEM, STAGE, 0, "the egress broker makes no sense");
	if (too_much(b))
		return err_set(err, PALE_E_SYSTEM, STAGE, 0,
			       "the egress broker tells more than there can be");
	ret->event = m.event;
	/* Of a rule that is gone: which one it was is not known any more. */
	if (ret->event.rule >= 0 && (size_t)ret->event.rule >= b->nrules)
		ret->event.rule = -1;
	return 1;
}

int broker_publish(struct broker *b, uint32_t index, const int *fds, size_t n, struct pale_err *err)
{
	const struct egress_message m = {.kind = EGRESS_PUBLISH, .value = index};
	int r = fd_send(b->sock, &m, sizeof(m), fds, n);

	return r < 0 ? fail_sending(b, -r, err) : 0;
}

void broker_connected(struct broker *b, uint32_t id, int error, int fd)
{
	const struct egress_message m = {
		.kind = EGRESS_CONNECTED, .value = id, .connect = {.error = error}};

	/* Should it be gone, its socket says so. */
	(void)!fd_send_now(b->sock, &m, sizeof(m), &fd, fd >= 0);
}

void broker_finish(struct broker *b, void (*fn)(void *arg, const struct egress_event *ev),
		   void *arg)
{
	uint64_t until = clock_mono_us() + FINISH_TIME_MS * 1000ULL;
	struct broker_said said;
	struct pale_err ignored;

	if (b->ended || say(b, EGRESS_STOP, NULL, 0, &ignored) < 0)
		return;
	b->finishing = true;
	while (wait_for(b, until)) {
		int r = broker_take(b, &said, &ignored);

		if (r < 0)
			break;
		if (r == 1)
			fn(arg, &said.event);
	}
}

void broker_free(struct broker *b)
{
	siginfo_t info;

	if (!b)
		return;
	/* Its socket's end would do, unless it stands still. */
	if (b->pid > 0 && !b->ended) {
		kill_it(b);
		while (waitid(P_PIDFD, (id_t)b->pidfd, &info, WEXITED) < 0 && errno == EINTR)
			;
	}
	close_fd(&b->pidfd);
	close_fd(&b->sock);
	secrets_placeholders_free(b->placeholders);
	free(b->ca);
	free(b);
}
