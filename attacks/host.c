/* What of the host the attacks are after, put up for as long as standard input is open: a secret
 * file, servers, a process, memory and messages of other programs. Prints KEY=VALUE lines, by which
 * the attacks find it (see target() in attack.h), then "ready"; at the end what was reached or
 * changed, "broken WHAT", and "done".
 *
 * Runs on the host as the caller. A box may send it anything: it answers each connection with the
 * canary and reads nothing. */
#include "attack.h"
#include "host.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <mqueue.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#define SESSION_KEYRING (-3)
#define SHOWN		"shown" /* to boxes */
#define READ		SHOWN "/read"
#define OVERLAY		SHOWN "/overlay"
#define COLLECTED	SHOWN "/collected"
#define READ_ENTRIES	5 /* hidden, file, fifo, link, socket */

enum { TCP, TCP6, UDP, ADDRESS, UNIX, ABSTRACT, INSIDE, FIFO, SERVERS };
static const char *const server_names[] = {"tcp",  "tcp6",     "udp",	 "address",
					   "unix", "abstract", "source", "source"};

static char canary[64];
static int servers[SERVERS] = {-1, -1, -1, -1, -1, -1, -1, -1};
static bool reached_by[SERVERS];

_Noreturn static void die(const char *what)
{
	fprintf(stderr, "pale-attacks: cannot make %s: %m\n", what);
	exit(1);
}

/* All names are below its directory, which is the working directory. */
static void make_file(const char *path, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 || dprintf(fd, "%s\n", canary) < 0 || fchmod(fd, mode) < 0)
		die(path);
	close(fd);
}

/* For everybody, once there is in it what should be. */
static void open_up(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || fchmod(fd, 0777) < 0)
		die(path);
	close(fd);
}

static unsigned short listen_inet(int which, int family, int type, struct in_addr own)
{
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = own};
	socklen_t len = family == AF_INET ? sizeof(a) : sizeof(a6);
	struct sockaddr *at = family == AF_INET ? (struct sockaddr *)&a : (struct sockaddr *)&a6;
	int fd = socket(family, type | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, at, len) < 0 || (type == SOCK_STREAM && listen(fd, 64) < 0) ||
	    getsockname(fd, at, &len) < 0) {
		close(fd); /* a host without IPv6 */
		return 0;
	}
	servers[which] = fd;
	return ntohs(family == AF_INET ? a.sin_port : a6.sin6_port);
}

static void listen_unix(int which, const char *name, bool abstract)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path + abstract, sizeof(a.sun_path) - 1, "%s", name);
	if (fd < 0 ||
	    bind(fd, (struct sockaddr *)&a,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + abstract + strlen(name))) <
		    0 ||
	    listen(fd, 64) < 0)
		die(name);
	servers[which] = fd;
}

/* An address of the host's that is not loopback; 0 if it has none. */
static struct in_addr own_address(char ret_interface[static IF_NAMESIZE])
{
	struct in_addr found = {0};
	struct ifaddrs *all, *i;

	if (getifaddrs(&all) < 0)
		return found;
	for (i = all; i && !found.s_addr; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET &&
		    !(i->ifa_flags & IFF_LOOPBACK) && i->ifa_flags & IFF_UP) {
			found = ((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr;
			snprintf(ret_interface, IF_NAMESIZE, "%s", i->ifa_name);
		}
	freeifaddrs(all);
	return found;
}

/* A process of the caller's, with the canary on its command line, in its environment and memory. */
static pid_t start_victim(int *ret_end)
{
	char variable[80], *env[] = {variable, NULL};
	char *argv[] = {(char *)(uintptr_t) "pale-attacks", (char *)(uintptr_t) "--victim", canary,
			NULL};
	int p[2];
	pid_t pid;

	snprintf(variable, sizeof(variable), "CANARY=%s", canary);
	if (pipe2(p, O_CLOEXEC) < 0 || (pid = fork()) < 0)
		die("a process");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(p[0], 0);
		execve("/proc/self/exe", argv, env);
		_exit(127);
	}
	close(p[0]);
	*ret_end = p[1];
	return pid;
}

static void serve(int which)
{
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	char byte[256];
	int fd;

	reached_by[which] = true;
	if (which == FIFO) {
		(void)!read(servers[FIFO], byte, sizeof(byte));
		return;
	}
	if (which == UDP) {
		if (recvfrom(servers[UDP], byte, sizeof(byte), MSG_DONTWAIT,
			     (struct sockaddr *)&from, &len) >= 0)
			sendto(servers[UDP], canary, strlen(canary), MSG_DONTWAIT,
			       (struct sockaddr *)&from, len);
		return;
	}
	fd = accept4(servers[which], NULL, NULL, SOCK_CLOEXEC);
	(void)!send(fd, canary, strlen(canary), MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

/* Until standard input ends. */
static void serve_all(void)
{
	for (;;) {
		struct pollfd p[SERVERS + 1];

		for (int i = 0; i < SERVERS; i++)
			p[i] = (struct pollfd){.fd = servers[i], .events = POLLIN};
		p[SERVERS] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
		if (poll(p, SERVERS + 1, -1) < 0 && errno != EINTR)
			return;
		for (int i = 0; i < SERVERS; i++)
			if (p[i].revents)
				serve(i);
		if (p[SERVERS].revents) {
			char byte;

			if (read(STDIN_FILENO, &byte, 1) <= 0)
				return;
		}
	}
}

/* Sources of a box: what lies in them must lead nowhere, and nothing of them may change. */
static void make_sources(const char *dir)
{
	char secret[400];

	snprintf(secret, sizeof(secret), "%s/secret", dir);
	/* Others on the host are kept out here: below, anybody may write. A box has the directories
	 * below as mounts, and does not come by this one. */
	if (mkdir(SHOWN, 0700) < 0 || mkdir(READ, 0700) < 0 || mkdir(OVERLAY, 0700) < 0 ||
	    mkdir(READ "/hidden", 0700) < 0 || mkdir(COLLECTED, 0700) < 0)
		die("directories");
	make_file(READ "/hidden/secret", 0666);
	make_file(READ "/file", 0666);
	make_file(OVERLAY "/file", 0666);
	if (mkfifo(READ "/fifo", 0666) < 0)
		die("a FIFO");
	/* Both ends, so that it is never at its end. */
	servers[FIFO] = open(READ "/fifo", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (symlink(secret, READ "/link") < 0)
		die("a link");
	listen_unix(INSIDE, READ "/socket", false);
	open_up(READ "/hidden");
	open_up(READ);
	open_up(OVERLAY);
	open_up(COLLECTED);
}

static void check_file(const char *path, const char *what)
{
	char text[128] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) != (ssize_t)strlen(canary) + 1 ||
	    strncmp(text, canary, strlen(canary)) != 0)
		printf("broken %s\n", what);
	close(fd);
}

/* Names that were not there. */
static void check_dir(const char *path, int entries, const char *what)
{
	DIR *d = opendir(path);
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d)))
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	if (n != entries)
		printf("broken %s\n", what);
	if (d)
		closedir(d);
}

/* What a box left in a directory that is collected: nothing of it may be more than a file. */
static void check_collected(void)
{
	DIR *d = opendir(COLLECTED);
	struct dirent *e;
	struct stat st;

	while (d && (e = readdir(d)))
		if (*e->d_name != '.' &&
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    (!(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) || st.st_mode & 07000))
			printf("broken collected-%s\n", e->d_name);
	if (d)
		closedir(d);
}

/* What a box left running: processes that call themselves by this name, with this argument. */
static void check_survivors(const char *argument)
{
	DIR *d = opendir("/proc");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		char path[300], text[128] = "";
		int fd;

		snprintf(path, sizeof(path), "/proc/%s/cmdline", e->d_name);
		fd = *e->d_name > '0' && *e->d_name <= '9' ? open(path, O_RDONLY | O_CLOEXEC) : -1;
		if (fd < 0)
			continue;
		if (read(fd, text, sizeof(text) - 1) > 0 && strcmp(text, SURVIVOR) == 0 &&
		    strcmp(text + sizeof(SURVIVOR), argument) == 0) {
			printf("broken survived\n");
			kill((pid_t)strtol(e->d_name, NULL, 10), SIGKILL);
		}
		close(fd);
	}
	if (d)
		closedir(d);
}

static void check(const char *argument)
{
	for (int i = 0; i < SERVERS; i++)
		if (reached_by[i])
			printf("broken reached-%s\n", server_names[i]);
	if (access("written", F_OK) == 0)
		puts("broken written");
	check_dir(READ, READ_ENTRIES, "source-written");
	check_dir(READ "/hidden", 1, "source-written");
	check_dir(OVERLAY, 1, "overlay-written");
	check_file("secret", "written");
	check_file(READ "/file", "source-written");
	check_file(READ "/hidden/secret", "source-written");
	check_file(OVERLAY "/file", "overlay-written");
	check_collected();
	check_survivors(argument);
}

/* Only what there is: an attack on what there is not would fail everywhere. */
static void tell(const char *what, const char *value, bool there)
{
	if (there)
		printf("%s=%s\n", what, value);
}

static void tell_number(const char *what, unsigned value, bool there)
{
	if (there)
		printf("%s=%u\n", what, value);
}

static int host_run(const char *dir)
{
	unsigned long long random = 0;
	char name[80];
	struct stat home;
	int shm, sem, victim_end;
	unsigned port, port6, udp, at_address = 0;
	struct in_addr loopback = {htonl(INADDR_LOOPBACK)}, own;
	char interface[IF_NAMESIZE] = "", address[INET_ADDRSTRLEN] = "", hostname[256] = "";
	pid_t victim;
	mqd_t queue;
	long key;
	void *at;

	signal(SIGPIPE, SIG_IGN);
	umask(0);
	if (chdir(dir) < 0)
		die(dir);
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		die("a random number");
	snprintf(canary, sizeof(canary), CANARY "%016llx", random);
	make_file("secret", 0644);
	make_sources(dir);
	port = listen_inet(TCP, AF_INET, SOCK_STREAM, loopback);
	port6 = listen_inet(TCP6, AF_INET6, SOCK_STREAM, loopback);
	udp = listen_inet(UDP, AF_INET, SOCK_DGRAM, loopback);
	own = own_address(interface);
	if (own.s_addr) {
		at_address = listen_inet(ADDRESS, AF_INET, SOCK_STREAM, own);
		inet_ntop(AF_INET, &own, address, sizeof(address));
	}
	gethostname(hostname, sizeof(hostname) - 1);
	listen_unix(UNIX, "socket", false);
	snprintf(name, sizeof(name), "pale-attack-%016llx", random);
	listen_unix(ABSTRACT, name, true);
	victim = start_victim(&victim_end);
	shm = shmget(IPC_PRIVATE, 4096, 0666 | IPC_CREAT);
	at = shm < 0 ? (void *)-1 : shmat(shm, NULL, 0);
	if (at != (void *)-1) {
		memcpy(at, canary, strlen(canary) + 1);
		shmdt(at);
	}
	sem = semget(IPC_PRIVATE, 1, 0666 | IPC_CREAT);
	snprintf(name, sizeof(name), "/pale-attack-%016llx", random);
	queue = mq_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666, NULL);
	key = syscall(SYS_add_key, "user", name + 1, canary, strlen(canary), SESSION_KEYRING);

	printf("secret=%s/secret\nwritten=%s/written\nunix=%s/socket\n", dir, dir, dir);
	printf("read=%s/" READ "\noverlay=%s/" OVERLAY "\ncollect=%s/" COLLECTED "\n", dir, dir,
	       dir);
	printf("dir=%s\npid=%d\nfirst=%d\n", dir, victim, victim);
	tell_number("port", port, port != 0);
	tell_number("port6", port6, port6 != 0);
	tell_number("udp", udp, udp != 0);
	tell_number("address_port", at_address, at_address != 0);
	tell_number("shm", (unsigned)shm, at != (void *)-1);
	tell_number("sem", (unsigned)sem, sem >= 0);
	if (stat(getenv("HOME") ? getenv("HOME") : "/root", &home) == 0)
		printf("home_is=%lu-%ld\n", (unsigned long)home.st_ino, (long)home.st_ctime);
	tell("address", address, at_address != 0);
	tell("interface", interface, *interface);
	tell("hostname", hostname, *hostname);
	tell("home", getenv("HOME") ? getenv("HOME") : "/root", true);
	tell("abstract", name + 1, true);
	tell("queue", name + 1, queue >= 0);
	tell("key", name + 1, key >= 0);
	puts("ready");
	serve_all();
	check(name + 1);
	puts("done");

	close(victim_end);
	kill(victim, SIGKILL);
	waitpid(victim, NULL, 0);
	if (shm >= 0)
		shmctl(shm, IPC_RMID, NULL);
	if (sem >= 0)
		semctl(sem, 0, IPC_RMID);
	if (queue >= 0)
		mq_unlink(name);
	if (key >= 0)
		syscall(SYS_keyctl, 21 /* INVALIDATE */, key);
	return 0;
}

int host(int argc, char **argv)
{
	char byte;

	(void)argc;
	if (strcmp(argv[1], "--host") == 0)
		return host_run(argv[2]);
	/* The victim: waits to be let go. */
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
