/* The first process in a box.
 *
 * Runs as pid 1 of the box's pid namespace, as the box's user, already confined by everything that
 * confines the command: no capabilities, Landlock, the seccomp filter. It was started by an exec
 * from a sealed memfd, so it holds nothing of its maker's memory, and it is not dumpable, so the
 * command cannot look into it. It waits for the gate to open, starts the command, reaps, passes
 * signals on, answers every name lookup with "no such name", connects to published ports, and when
 * the command ends it kills whatever is left and reports.
 *
 * In a box whose command is a zygote's fork it only does the rest; and as the first process of a
 * zygote's own box it reaps, and lasts as long as somebody holds the control socket.
 *
 * Hostile: DNS queries (parsed here because here there is nothing to lose), and every process it
 * reaps. Built against musl, static: it has to be small and quick to start, no more. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "protocol.h"

#define CLOSE_RANGE_CLOEXEC_FLAG (1U << 2)
#define DNS_HEADER		 12
#define FOREIGN_TRIES		 2000

static int control_fd;
static bool stay; /* when all else has ended, too: see INIT_GO */

static void tell(const struct init_message *m, int flags)
{
	ssize_t n;

	do
		n = send(control_fd, m, sizeof(*m), MSG_NOSIGNAL | flags);
	while (n < 0 && errno == EINTR);
	/* The supervisor is gone: so is the box. */
	if (n < 0 && errno != EAGAIN)
		_exit(1);
}

static void hear(struct init_message *m)
{
	ssize_t n;

	do
		n = recv(control_fd, m, sizeof(*m), 0);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(*m))
		_exit(1);
}

/* The command cannot be started, for what errno says. */
static _Noreturn void refuse(void)
{
	struct init_message m = {.kind = INIT_EXEC_FAILED, .value = errno};

	tell(&m, 0);
	_exit(m.value == ENOENT ? 127 : 126);
}

/* Everything but the exec is done before the gate opens. */
static void run_command(const char *program, char **argv, bool tty, const sigset_t *nothing,
			int gate, int kernel_fd, int program_fd)
{
	char open;

	sigprocmask(SIG_SETMASK, nothing, NULL);
	if (setsid() < 0)
		refuse();
	if (tty)
		ioctl(STDIN_FILENO, TIOCSCTTY, 0);
	errno = EIO;
	if (read(gate, &open, 1) != 1)
		refuse();
	if (kernel_fd >= 0) {
		int control = fcntl(control_fd, F_DUPFD, INIT_KERNEL_FD + 1);

		/* These two make room: the number is another's. */
		if (control < 0)
			refuse();
		control_fd = control;
		if (program_fd >= 0 &&
		    (program_fd = fcntl(program_fd, F_DUPFD, INIT_KERNEL_FD + 1)) < 0)
			refuse();
		if (kernel_fd != INIT_KERNEL_FD && dup2(kernel_fd, INIT_KERNEL_FD) < 0)
			refuse();
	}
	/* Or it would have the supervisor's ear. */
	if (syscall(SYS_close_range, kernel_fd < 0 ? 3U : INIT_KERNEL_FD + 1U, UINT_MAX,
		    CLOSE_RANGE_CLOEXEC_FLAG) < 0)
		refuse();
	if (program_fd >= 0)
		syscall(SYS_execveat, program_fd, "", argv, environ, AT_EMPTY_PATH);
	else
		execv(program, argv);
	refuse();
}

/* One query: its name goes to the supervisor, and the answer is NXDOMAIN, at once. */
static void answer_lookup(int dns_fd)
{
	unsigned char p[512];
	struct sockaddr_storage from;
	socklen_t from_len = sizeof(from);
	struct init_message m = {.kind = INIT_LOOKUP};
	ssize_t n =
		recvfrom(dns_fd, p, sizeof(p), MSG_DONTWAIT, (struct sockaddr *)&from, &from_len);
	size_t len = n < 0 ? 0 : (size_t)n, at = DNS_HEADER;

	/* A query, with one question and a name of plain labels; anything else is not answered. */
	if (len < DNS_HEADER + 5 || (p[2] & 0x80) || p[4] != 0 || p[5] != 1)
		return;
	while (at < len && p[at] != 0) {
		size_t label = p[at];

		if (label > 63 || at + 1 + label >= len || m.text_len + label + 1 > 254)
			return;
		if (m.text_len)
			m.text[m.text_len++] = '.';
		memcpy(m.text + m.text_len, p + at + 1, label);
		m.text_len += (uint32_t)label;
		at += 1 + label;
	}
	if (at + 5 > len)
		return;
	m.type = (uint32_t)p[at + 1] << 8 | p[at + 2];
	tell(&m, MSG_DONTWAIT);
	p[2] = (unsigned char)(0x80 | (p[2] & 0x79)); /* a response; opcode and RD as asked */
	p[3] = 0x83;				      /* recursion available, NXDOMAIN */
	memset(p + 6, 0, 6);			      /* no answers, no additional records */
	sendto(dns_fd, p, at + 5, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&from, from_len);
}

/* A non-blocking socket, connected to the port of loopback or about to be: or a negative errno. The
 * kernel has asked the other end when connect() returns, so that a refusal is known then; only
 * where the server's queue is full it goes on trying. */
static int connect_to(int family, uint16_t port)
{
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} to, own;
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error = 0;
	socklen_t len = sizeof(error);

	if (fd < 0)
		return -errno;
	memset(&to, 0, sizeof(to));
	to.sa.sa_family = (sa_family_t)family;
	if (family == AF_INET) {
		to.in.sin_port = htons(port);
		to.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	} else {
		to.in6.sin6_port = htons(port);
		to.in6.sin6_addr = in6addr_loopback;
	}
	if (connect(fd, &to.sa, family == AF_INET ? sizeof(to.in) : sizeof(to.in6)) < 0 &&
	    errno != EINPROGRESS)
		error = errno;
	else
		(void)!getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
	/* Where nobody listens, a socket that happened to get the port itself would talk to itself.
	 */
	len = sizeof(own);
	if (!error && getsockname(fd, &own.sa, &len) == 0 &&
	    (family == AF_INET ? own.in.sin_port : own.in6.sin6_port) == htons(port))
		error = ECONNREFUSED;
	if (!error)
		return fd;
	close(fd);
	return -error;
}

/* A connection from outside to a published port: made here, so that it is one of the box's own, and
 * handed out. Nothing of the host's comes in. */
static void connect_port(const struct init_message *asked)
{
	struct init_message m = {.kind = INIT_CONNECTED, .id = asked->id};
	struct iovec iov = {&m, sizeof(m)};
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	int fd = connect_to(AF_INET, (uint16_t)asked->value), other;
	ssize_t n;

	/* A server may listen on one of the two only. */
	if (fd < 0) {
		other = connect_to(AF_INET6, (uint16_t)asked->value);
		if (other >= 0)
			fd = other;
	}
	if (fd < 0) {
		m.value = -fd;
		tell(&m, 0);
		return;
	}
	msg.msg_control = control.space;
	msg.msg_controllen = sizeof(control.space);
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	do
		n = sendmsg(control_fd, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	close(fd);
	if (n < 0)
		_exit(1);
}

/* The command has ended: nothing may outlive it. What is no child of ours (a zygote's fork)
 * somebody outside reaps, in an instant; should he not, our own end waits for him. */
static void finish(int status)
{
	const struct timespec instant = {.tv_nsec = 50000};
	struct init_message m = {.kind = INIT_EXIT, .value = status};
	struct rusage used;

	for (int tries = 0; tries < FOREIGN_TRIES;) {
		int leftover_status;
		bool alone = kill(-1, SIGKILL) < 0 && errno == ESRCH;
		pid_t pid = waitpid(-1, &leftover_status, 0);

		if (pid > 0 && WIFSIGNALED(leftover_status) && WTERMSIG(leftover_status) == SIGKILL)
			m.leftover++;
		if (pid > 0 || errno != ECHILD)
			continue;
		if (alone)
			break;
		nanosleep(&instant, NULL);
		tries++;
	}
	getrusage(RUSAGE_CHILDREN, &used);
	m.cpu_us = (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
		   (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
	m.max_rss_kib = (uint64_t)used.ru_maxrss;
	tell(&m, 0);
	while (stay)
		hear(&m);
	_exit(0);
}

static void reap(int signal_fd, pid_t command)
{
	struct signalfd_siginfo info[8];
	int status;
	pid_t pid;

	/* Some, not all: who never stops sending us signals would keep us from our work. */
	(void)!read(signal_fd, info, sizeof(info));
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0 || (pid < 0 && errno == EINTR))
		if (pid > 0 && pid == command)
			finish(status);
}

/* One process, and with it the group that it leads, which may be there without it. */
static void kill_one(const struct init_message *m)
{
	const struct init_message done = {.kind = INIT_KILLED, .id = m->id};
	pid_t pid = (pid_t)m->id;

	if (pid > 1 && m->type == 1)
		kill(-pid, m->value);
	/* It may have left its group. */
	if (pid > 1 && (m->type != 1 || getpgid(pid) != pid))
		kill(pid, m->value);
	tell(&done, 0);
}

/* Who stood already when all was stopped: their programs wanted that, and they stay so. */
static pid_t stood[256];
static unsigned nstood;

static int is_stopped(pid_t pid)
{
	char path[32], text[512], *state;
	int fd;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	/* The name before it may hold anything, but no more than 64 bytes. */
	state = strrchr(text, ')');
	return state && state[1] == ' ' && state[2] == 'T';
}

/* The next process of the box, by number: the kernel lists them so. 0: no more. */
static pid_t next_process(DIR *proc)
{
	struct dirent *e;

	while (proc && (e = readdir(proc))) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

		if (pid > 1)
			return pid;
	}
	return 0;
}

static void stop_all(void)
{
	DIR *proc = opendir("/proc");
	pid_t pid;

	nstood = 0;
	while ((pid = next_process(proc)) && nstood < sizeof(stood) / sizeof(*stood))
		if (is_stopped(pid))
			stood[nstood++] = pid;
	if (proc)
		closedir(proc);
	kill(-1, SIGSTOP);
}

/* All of them at once, unless some are to stay. Children before their parents, as far as numbers
 * tell: a shell that goes on and finds its child still stopped takes that for its user's wish. */
static void go_on(void)
{
	static pid_t pids[4096];
	DIR *proc = opendir("/proc");
	unsigned n = 0, i;
	pid_t pid;

	while ((pid = next_process(proc)) && n < sizeof(pids) / sizeof(*pids)) {
		for (i = 0; i < nstood && stood[i] != pid; i++)
			;
		if (i == nstood)
			pids[n++] = pid;
	}
	if (proc)
		closedir(proc);
	if (n == sizeof(pids) / sizeof(*pids) || (n == 0 && !nstood))
		kill(-1, SIGCONT);
	while (n)
		kill(pids[--n], SIGCONT);
	nstood = 0;
}

static int next_number(char **s)
{
	int value = (int)strtol(*s, s, 10);

	if (**s == ',')
		++*s;
	return value;
}

int main(int argc, char **argv)
{
	struct init_message m = {.kind = INIT_READY};
	sigset_t all, nothing;
	int dns_fd, listener_fd, signal_fd, kernel_fd, program_fd, gate[2];
	pid_t command = 0;
	bool tty, starts = argc > 3;

	if (prctl(PR_SET_DUMPABLE, 0) < 0 || argc < 2 || argc == 3)
		return 1;
	control_fd = next_number(&argv[1]);
	dns_fd = next_number(&argv[1]);
	listener_fd = next_number(&argv[1]);
	tty = next_number(&argv[1]) != 0;
	kernel_fd = next_number(&argv[1]);
	program_fd = next_number(&argv[1]);
	sigfillset(&all);
	sigemptyset(&nothing);
	sigprocmask(SIG_SETMASK, &all, NULL);
	signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signal_fd < 0 || pipe2(gate, O_CLOEXEC) < 0)
		return 1;

	tell(&m, 0);
	if (starts)
		command = fork();
	if (command < 0) {
		m = (struct init_message){.kind = INIT_EXEC_FAILED, .value = errno};
		tell(&m, 0);
		return 1;
	}
	if (starts && command == 0) {
		close(gate[1]);
		run_command(argv[2], argv + 3, tty, &nothing, gate[0], kernel_fd, program_fd);
	}
	if (kernel_fd >= 0)
		close(kernel_fd);
	if (program_fd >= 0)
		close(program_fd);
	/* From here on only the command holds the pipes: their end is its end. */
	close(STDIN_FILENO);
	close(STDOUT_FILENO);
	close(STDERR_FILENO);
	close(gate[0]);
	hear(&m);
	if (m.kind == INIT_ADOPTED && !starts) {
		command = (pid_t)m.id;
		hear(&m);
	}
	if (listener_fd >= 0)
		close(listener_fd);
	if (m.kind != INIT_GO || (starts && write(gate[1], "", 1) != 1))
		return 1;
	close(gate[1]);
	stay = m.value != 0;

	for (;;) {
		struct pollfd fds[] = {
			{signal_fd, POLLIN, 0},
			{control_fd, POLLIN, 0},
			{dns_fd, POLLIN, 0},
		};

		if (poll(fds, dns_fd < 0 ? 2 : 3, -1) < 0)
			continue;
		if (fds[0].revents)
			reap(signal_fd, starts ? command : 0);
		if (fds[1].revents) {
			hear(&m);
			if (m.kind == INIT_ADOPTED && !command)
				command = (pid_t)m.id;
			if (m.kind == INIT_END)
				finish(m.value);
			if (m.kind == INIT_SIGNAL && command > 1 && kill(-command, m.value) < 0)
				kill(command, m.value);
			if (m.kind == INIT_KILL)
				kill_one(&m);
			if (m.kind == INIT_PAUSE && m.type == 0)
				kill(-1, m.value);
			if (m.kind == INIT_PAUSE && m.type == 1 && m.value == SIGSTOP)
				stop_all();
			if (m.kind == INIT_PAUSE && m.type == 1 && m.value == SIGCONT)
				go_on();
			if (m.kind == INIT_CONNECT)
				connect_port(&m);
		}
		if (fds[2].revents)
			answer_lookup(dns_fd);
	}
}
