/* The part of a box that the broker needs, without the box: a network namespace with the real
 * addresses, routes, rules and sockets, the real broker, and a command inside.
 *
 * usage: netbox [-r] [-p FILE] [-u USER] BROKER CONFIG EVENTS COMMAND...
 *
 * CONFIG: the JSON of config.h, without "mode". EVENTS: a file that gets a line of JSON for each
 * message of the broker. -r: REDIRECT. -p: the broker's process id goes into FILE. On SIGUSR1
 * CONFIG is read again and its rules are sent as EGRESS_RULES. The command's exit status is ours;
 * 125: it was not started. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <netinet/in.h>
#include <poll.h>
#include <pwd.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <linux/netlink.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "confine/netlink.h"
#include "confine/nft.h"
#include "egress/wire.h"

static void die(const char *what)
{
	fprintf(stderr, "netbox: %s: %s\n", what, strerror(errno));
	exit(125);
}

static int open_socket(int family, int type, int port, bool loopback)
{
	int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
	bool v4 = family == AF_INET;
	struct sockaddr_in in = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(loopback ? INADDR_LOOPBACK : INADDR_ANY)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
				   .sin6_port = htons((uint16_t)port),
				   .sin6_addr = loopback ? in6addr_loopback : in6addr_any};

	if (fd < 0)
		die("socket");
	if (!v4)
		setsockopt(fd, SOL_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (type == SOCK_DGRAM) {
		setsockopt(fd, v4 ? SOL_IP : SOL_IPV6, v4 ? IP_PKTINFO : IPV6_RECVPKTINFO, &on,
			   sizeof(on));
		if (!v4)
			setsockopt(fd, SOL_IPV6, IPV6_FREEBIND, &on, sizeof(on));
	}
	if (port == EGRESS_TCP_PORT) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		setsockopt(fd, v4 ? SOL_IP : SOL_IPV6, v4 ? IP_TRANSPARENT : IPV6_TRANSPARENT, &on,
			   sizeof(on));
	}
	if (!port)
		return fd;
	if (bind(fd, v4 ? (void *)&in : (void *)&in6, v4 ? sizeof(in) : sizeof(in6)) < 0 ||
	    (type == SOCK_STREAM && listen(fd, SOMAXCONN) < 0))
		die("bind or listen");
	return fd;
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(path);
	close(fd);
}

/* In a child: the namespace, its sockets to the parent, a word to go on, the command. */
static void inside(int sock, enum nft_set set, const char *user, char **command)
{
	char map[64], hosts[] = "/tmp/netbox.XXXXXX";
	int fds[EGRESS_NSOCKETS], n = 0, file;
	uid_t uid = geteuid();
	gid_t gid = getegid();
	struct pale_err err;
	char go;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWNET | CLONE_NEWNS | (uid ? CLONE_NEWUSER : 0)) < 0)
		die("unshare");
	if (uid) {
		write_file("/proc/self/setgroups", "deny");
		snprintf(map, sizeof(map), "%u %u 1", uid, uid);
		write_file("/proc/self/uid_map", map);
		snprintf(map, sizeof(map), "%u %u 1", gid, gid);
		write_file("/proc/self/gid_map", map);
	}
	if (netlink_all_local(EGRESS_OWN4, EGRESS_OWN6, true, &err) < 0 ||
	    nft_load(set, &err) < 0) {
		fprintf(stderr, "netbox: %s\n", err.message);
		exit(125);
	}
	write_file("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
	file = mkstemp(hosts);
	if (file < 0 || write(file, "nameserver 10.0.2.100\n", 22) < 0 || fchmod(file, 0644) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount(hosts, "/etc/resolv.conf", NULL, MS_BIND, NULL) < 0)
		die("/etc/resolv.conf");
	/* Not the host's: names are for the broker. */
	if (ftruncate(file, 0) < 0)
		die("ftruncate");
	lseek(file, 0, SEEK_SET);
	if (write(file, "nameserver 10.0.2.100\n", 22) < 0)
		die("write");
	close(file);
	unlink(hosts);
	mount("/dev/null", "/etc/hosts", NULL, MS_BIND, NULL);
	fds[n++] = open_socket(AF_INET, SOCK_STREAM, EGRESS_TCP_PORT, true);
	fds[n++] = open_socket(AF_INET6, SOCK_STREAM, EGRESS_TCP_PORT, true);
	fds[n++] = open_socket(AF_INET, SOCK_STREAM, EGRESS_PROXY_PORT, true);
	fds[n++] = open_socket(AF_INET, SOCK_DGRAM, 53, false);
	fds[n++] = open_socket(AF_INET6, SOCK_DGRAM, 53, false);
	fds[n++] = open_socket(AF_INET, SOCK_STREAM, 53, false);
	fds[n++] = open_socket(AF_INET6, SOCK_STREAM, 53, false);
	fds[n++] = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	for (int i = 0; i < 2 * EGRESS_UDPS; i++)
		fds[n++] = open_socket(i < EGRESS_UDPS ? AF_INET : AF_INET6, SOCK_DGRAM, 0, false);
	if (fd_send(sock, "s", 1, fds, (size_t)n) < 0)
		die("sending the sockets");
	for (int i = 0; i < n; i++)
		close(fds[i]);
	if (recv(sock, &go, 1, 0) != 1)
		exit(125);
	if (user) {
		struct passwd *p = getpwnam(user);

		if (!p || initgroups(user, p->pw_gid) < 0 || setgid(p->pw_gid) < 0 ||
		    setuid(p->pw_uid) < 0)
			die(user);
	}
	signal(SIGUSR1, SIG_DFL);
	execvp(command[0], command);
	die(command[0]);
}

/* The configuration as a sealed memfd; with `mode`, or, for new rules, without all but "network".
 */
static int config_memfd(const char *path, const char *mode)
{
	json_error_t where;
	json_t *root = json_load_file(path, 0, &where), *rules;
	char *text;
	int fd = memfd_create("config", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (!root) {
		fprintf(stderr, "netbox: %s: %s\n", path, where.text);
		exit(125);
	}
	if (mode) {
		json_object_set_new(root, "mode", json_string(mode));
	} else {
		rules = json_pack("{s:O}", "network", json_object_get(root, "network"));
		json_decref(root);
		root = rules;
	}
	text = json_dumps(root, 0);
	if (fd < 0 || fd_write_all(fd, text, strlen(text)) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		die("memfd");
	json_decref(root);
	free(text);
	return fd;
}

static void send_message(int control, enum egress_kind kind, const int *fds, size_t nfds)
{
	struct egress_message m = {.kind = kind};

	if (fd_send(control, &m, sizeof(m), fds, nfds) < 0)
		die("control socket");
}

static json_t *text_of(const char *s)
{
	char escaped[4 * 600];

	return json_string(str_escape_into(escaped, sizeof(escaped), s, strlen(s)));
}

static void write_event(FILE *f, const struct egress_message *m)
{
	static const char *const kinds[] = {
		[EGRESS_CA] = "ca",
		[EGRESS_READY] = "ready",
		[EGRESS_FAILED] = "failed",
		[EGRESS_EVENT] = "event",
	};
	static const char *const outcomes[] = {"?",	  "allowed",	 "opened",
					       "blocked", "unreachable", "exfiltration"};
	static const char *const whats[] = {"?", "lookup", "connection", "request", "inbound"};
	const struct egress_event *e = &m->event;
	json_t *o = json_pack("{s:s}", "kind", kinds[m->kind]);

	if (m->kind == EGRESS_EVENT) {
		json_object_set_new(o, "outcome", json_string(outcomes[e->outcome]));
		json_object_set_new(o, "what", json_string(whats[e->what]));
		json_object_set_new(o, "count", json_integer((json_int_t)e->count));
		json_object_set_new(o, "rule", json_integer(e->rule));
		json_object_set_new(o, "port", json_integer(e->port));
		json_object_set_new(o, "source_port", json_integer(e->source_port));
		json_object_set_new(o, "protocol", json_integer(e->protocol));
		json_object_set_new(o, "family", json_integer(e->family));
		json_object_set_new(o, "status", json_integer(e->status));
		json_object_set_new(o, "out", json_integer((json_int_t)e->bytes_out));
		json_object_set_new(o, "in", json_integer((json_int_t)e->bytes_in));
		json_object_set_new(o, "us", json_integer((json_int_t)e->duration_us));
		json_object_set_new(o, "host", text_of(e->host));
		json_object_set_new(o, "address", text_of(e->address));
		json_object_set_new(o, "sni", text_of(e->sni));
		json_object_set_new(o, "method", text_of(e->method));
		json_object_set_new(o, "path", text_of(e->path));
		json_object_set_new(o, "detail", text_of(e->detail));
	} else {
		json_object_set_new(o, "text", json_string(m->text));
	}
	json_dumpf(o, f, JSON_COMPACT);
	fputc('\n', f);
	fflush(f);
	json_decref(o);
}

/* 1: a message; 0: the broker is gone. */
static int next(int control, FILE *f, struct egress_message *m)
{
	ssize_t n = fd_recv(control, m, sizeof(*m), NULL, 0, NULL);

	if (n < (ssize_t)sizeof(*m) || m->kind < EGRESS_CA || m->kind > EGRESS_EVENT)
		return 0;
	write_event(f, m);
	return 1;
}

int main(int argc, char **argv)
{
	const char *user = NULL, *pid_file = NULL;
	enum nft_set set = NFT_TPROXY;
	struct egress_message m;
	int option, pair[2], control[2], fds[EGRESS_NSOCKETS], signals, config, status = 125;
	size_t n;
	sigset_t mask;
	FILE *events;
	char word;

	while ((option = getopt(argc, argv, "+rp:u:")) >= 0)
		switch (option) {
		case 'r': set = NFT_REDIRECT; break;
		case 'p': pid_file = optarg; break;
		case 'u': user = optarg; break;
		default: return 125;
		}
	argv += optind;
	if (argc - optind < 4) {
		fprintf(stderr, "usage: netbox [-r] [-p FILE] [-u USER] BROKER CONFIG EVENTS "
				"COMMAND...\n");
		return 125;
	}
	events = fopen(argv[2], "we");
	if (!events || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0)
		die("starting");

	pid_t child = fork();

	if (child == 0) {
		close(pair[0]);
		close(control[0]);
		close(control[1]);
		inside(pair[1], set, user, argv + 3);
	}
	close(pair[1]);

	pid_t broker = fork();

	if (broker == 0) {
		dup2(control[1], 0);
		execl(argv[0], "pale-egress", NULL);
		die(argv[0]);
	}
	close(control[1]);
	if (pid_file) {
		FILE *f = fopen(pid_file, "we");

		if (!f || fprintf(f, "%d\n", broker) < 0 || fclose(f) != 0)
			die(pid_file);
	}
	config = config_memfd(argv[1], set == NFT_TPROXY ? "tproxy" : "redirect");
	send_message(control[0], EGRESS_CONFIG, &config, 1);
	close(config);
	if (fd_recv(pair[0], &word, 1, fds, EGRESS_NSOCKETS, &n) != 1 || n != EGRESS_NSOCKETS)
		return 125;
	send_message(control[0], EGRESS_SOCKETS, fds, n);
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
	do
		if (!next(control[0], events, &m) || m.kind == EGRESS_FAILED) {
			fprintf(stderr, "netbox: the broker: %s\n",
				m.kind == EGRESS_FAILED ? m.text : "gone");
			return 125;
		}
	while (m.kind != EGRESS_READY);
	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	sigaddset(&mask, SIGUSR1);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	signals = signalfd(-1, &mask, SFD_CLOEXEC);
	if (signals < 0 || send(pair[0], "g", 1, 0) != 1)
		die("starting the command");
	for (bool ended = false; !ended;) {
		struct pollfd p[2] = {{.fd = control[0], .events = POLLIN},
				      {.fd = signals, .events = POLLIN}};
		struct signalfd_siginfo info;
		int s;

		if (poll(p, 2, -1) < 0)
			continue;
		if (p[0].revents && !next(control[0], events, &m)) {
			fprintf(stderr, "netbox: the broker is gone\n");
			kill(child, SIGKILL);
			return 125;
		}
		if (!p[1].revents || read(signals, &info, sizeof(info)) != sizeof(info))
			continue;
		if (info.ssi_signo == SIGUSR1) {
			config = config_memfd(argv[1], NULL);
			send_message(control[0], EGRESS_RULES, &config, 1);
			close(config);
		}
		if (waitpid(child, &s, WNOHANG) == child) {
			status = WIFEXITED(s) ? WEXITSTATUS(s) : 128 + WTERMSIG(s);
			ended = true;
		}
	}
	send_message(control[0], EGRESS_STOP, NULL, 0);
	while (next(control[0], events, &m))
		;
	if (waitpid(broker, &option, 0) != broker || option != 0) {
		fprintf(stderr, "netbox: the broker ended with %#x\n", option);
		status = 125;
	}
	return status;
}
