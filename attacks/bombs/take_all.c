/* Takes as much as it can of one thing, says how many it got, and holds it: take_all WHAT SECONDS
 * [MOST] All of its processes take, so that a limit of each is none of all. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB (1 << 20)

static char junk[MIB];

/* Each takes one more, and returns a size in its unit, or -1. */
static long take_pty(void)
{
	return open("/dev/ptmx", O_RDWR | O_NOCTTY) < 0 ? -1 : 1;
}

static long take_inotify(void)
{
	return inotify_init1(0) < 0 ? -1 : 1;
}

static long take_watch(void)
{
	static int fd = -1;
	static unsigned n;
	char name[64];

	if (fd < 0)
		fd = inotify_init1(0);
	snprintf(name, sizeof(name), "/tmp/watch-%d-%u", getpid(), n++);
	if (mkdir(name, 0700) < 0)
		return -1;
	return inotify_add_watch(fd, name, IN_ALL_EVENTS) < 0 ? -1 : 1;
}

static long take_timer(void)
{
	struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
	timer_t t;

	return timer_create(CLOCK_MONOTONIC, &ev, &t) < 0 ? -1 : 1;
}

static long take_signal(void)
{
	sigset_t all;
	union sigval v = {0};

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	return sigqueue(getpid(), SIGRTMIN, v) < 0 ? -1 : 1;
}

static long take_queue(void)
{
	static unsigned n;
	char name[64];
	mqd_t q;

	snprintf(name, sizeof(name), "/bomb-%d-%u", getpid(), n++);
	q = mq_open(name, O_RDWR | O_CREAT, 0600, NULL);
	return q < 0 ? -1 : 1;
}

/* MiB of memory that is nobody's address space. */
static long take_memfd(void)
{
	int fd = memfd_create("bomb", 0);

	return fd < 0 || write(fd, junk, MIB) != MIB ? -1 : 1;
}

/* The same, held only by a message on its way. */
static long take_sent_memfd(void)
{
	int fd = memfd_create("bomb", 0), pair[2];
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {junk, 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	static int to = -1;

	if (to < 0) {
		if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair) < 0)
			return -1;
		to = pair[0];
	}
	for (int i = 0; i < 8; i++)
		if (write(fd, junk, MIB) != MIB)
			return -1;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	if (sendmsg(to, &m, 0) < 0) {
		to = -1;
		close(fd);
		return errno == EAGAIN ? 0 : -1;
	}
	close(fd);
	return 8;
}

static long take_shm(void)
{
	int id = shmget(IPC_PRIVATE, 8 * MIB, 0600 | IPC_CREAT);
	char *p = id < 0 ? (void *)-1 : shmat(id, NULL, 0);

	if (p == (void *)-1)
		return -1;
	memset(p, 1, 8 * MIB);
	shmdt(p);
	return 8;
}

static long take_tmpfs(void)
{
	static int fd = -1;
	char name[64];

	if (fd < 0) {
		snprintf(name, sizeof(name), "/dev/shm/bomb-%d", getpid());
		fd = open(name, O_RDWR | O_CREAT, 0600);
	}
	return write(fd, junk, MIB) != MIB ? -1 : 1;
}

static long take_sparse(void)
{
	static unsigned n;
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/tmp/sparse-%d-%u", getpid(), n++);
	fd = open(name, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, 1L << 40) < 0)
		return -1;
	close(fd);
	return 1 << 20;
}

static long take_inode(void)
{
	static unsigned n;
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/tmp/inode-%d-%u", getpid(), n++);
	fd = open(name, O_WRONLY | O_CREAT, 0600);
	return fd < 0 ? -1 : (close(fd), 1);
}

static long take_depth(void)
{
	static int begun;

	if (!begun++ && chdir("/tmp") < 0)
		return -1;
	return mkdir("d", 0700) < 0 || chdir("d") < 0 ? -1 : 1;
}

/* Kernel memory: KiB in buffers. */
static long fill(int fd)
{
	long sum = 0;
	ssize_t n;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	while ((n = write(fd, junk, 65536)) > 0)
		sum += n >> 10;
	return sum;
}

static long take_pipe(void)
{
	int p[2];

	if (pipe(p) < 0)
		return -1;
	fcntl(p[1], F_SETPIPE_SZ, MIB);
	return fill(p[1]);
}

static long take_unix(void)
{
	int p[2], size = 64 * MIB;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, p) < 0)
		return -1;
	setsockopt(p[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	return fill(p[0]);
}

static long take_tcp(void)
{
	static struct sockaddr_in at = {.sin_family = AF_INET};
	static int server = -1;
	socklen_t len = sizeof(at);
	int c, size = 64 * MIB;

	if (server < 0) {
		server = socket(AF_INET, SOCK_STREAM, 0);
		at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		at.sin_port = 0;
		if (bind(server, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(server, 100) < 0)
			return -1;
		getsockname(server, (struct sockaddr *)&at, &len);
	}
	c = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(c, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	if (c < 0 || connect(c, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    accept(server, NULL, NULL) < 0)
		return -1;
	return fill(c);
}

static long take_udp(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int s = socket(AF_INET, SOCK_DGRAM, 0), size = 64 * MIB;
	unsigned held[9] = {0}; /* SK_MEMINFO_RMEM_ALLOC comes first */

	setsockopt(s, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (s < 0 || bind(s, (struct sockaddr *)&at, sizeof(at)) < 0)
		return -1;
	getsockname(s, (struct sockaddr *)&at, &len);
	for (int i = 0; i < 400; i++)
		(void)!sendto(s, junk, 1000, MSG_DONTWAIT, (struct sockaddr *)&at, len);
	len = sizeof(held);
	getsockopt(s, SOL_SOCKET, SO_MEMINFO, held, &len);
	return held[0] >> 10;
}

static long take_epoll(void)
{
	static int e = -1, n;
	int fd;
	struct epoll_event ev = {.events = EPOLLIN};

	if (e < 0 || n++ == 900) {
		if (e < 0)
			for (fd = 0; fd >= 0 && n < 100;)
				n += (fd = eventfd(0, 0)) >= 0;
		e = epoll_create1(0);
		n = 0;
	}
	fd = 3 + n % 90;
	return e < 0 || (epoll_ctl(e, EPOLL_CTL_ADD, fd, &ev) < 0 && errno == ENOSPC) ? -1 : 1;
}

static long take_timerfd(void)
{
	struct itimerspec soon = {{0, 1000}, {0, 1000}};
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);

	return fd < 0 || timerfd_settime(fd, 0, &soon, NULL) < 0 ? -1 : 1;
}

static long take_message(void)
{
	struct {
		long type;
		char text[8000];
	} m = {1, {0}};
	int q = msgget(IPC_PRIVATE, 0600 | IPC_CREAT);
	long sum = 0;

	if (q < 0)
		return -1;
	while (msgsnd(q, &m, sizeof(m.text), IPC_NOWAIT) == 0)
		sum += 8;
	return sum;
}

static long take_semaphore(void)
{
	return semget(IPC_PRIVATE, 250, 0600 | IPC_CREAT) < 0 ? -1 : 250;
}

static long take_lock(void)
{
	static int fd = -1, n;
	struct flock l = {.l_type = F_WRLCK, .l_len = 1};

	if (fd < 0) {
		char name[64];

		snprintf(name, sizeof(name), "/tmp/lock-%d", getpid());
		fd = open(name, O_RDWR | O_CREAT, 0600);
	}
	l.l_start = 2L * n++;
	return fcntl(fd, F_SETLK, &l) < 0 ? -1 : 1;
}

static long take_locked(void)
{
	void *p = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED || mlock(p, MIB) < 0 ? -1 : 1;
}

static long take_mapping(void)
{
	/* Each other page, so that the kernel cannot join them. */
	static char *at;

	if (!at)
		at = mmap(NULL, 1L << 34, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			  -1, 0);
	at += 8192;
	return mprotect(at, 4096, PROT_READ) < 0 ? -1 : 1;
}

static long take_zombie(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return pid < 0 ? -1 : 1;
}

static const struct {
	const char *name;
	long (*take)(void);
} things[] = {
	{"depth", take_depth},
	{"epoll", take_epoll},
	{"inode", take_inode},
	{"inotify", take_inotify},
	{"lock", take_lock},
	{"locked", take_locked},
	{"mapping", take_mapping},
	{"memfd", take_memfd},
	{"message", take_message},
	{"pipe", take_pipe},
	{"pty", take_pty},
	{"queue", take_queue},
	{"semaphore", take_semaphore},
	{"sent_memfd", take_sent_memfd},
	{"shm", take_shm},
	{"signal", take_signal},
	{"sparse", take_sparse},
	{"tcp", take_tcp},
	{"timer", take_timer},
	{"timerfd", take_timerfd},
	{"tmpfs", take_tmpfs},
	{"udp", take_udp},
	{"unix", take_unix},
	{"watch", take_watch},
	{"zombie", take_zombie},
};

int main(int argc, char **argv)
{
	long most = argc > 3 ? strtol(argv[3], NULL, 10) : 2000000;
	long *sum = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const int processes = 16;
	pid_t parent = getpid();

	if (argc < 3)
		return 2;
	memset(junk, 1, sizeof(junk));
	for (size_t i = 0; i < sizeof(things) / sizeof(*things); i++) {
		if (strcmp(things[i].name, argv[1]) != 0)
			continue;
		for (int p = 0; p < processes; p++) {
			if (fork())
				continue;
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != parent)
				_exit(1);
			for (int failures = 0; failures < 3 && *sum < most;) {
				long n = things[i].take();

				if (n < 0)
					failures++;
				else
					__atomic_add_fetch(sum, n, __ATOMIC_RELAXED);
			}
			__atomic_add_fetch(sum + 1, 1, __ATOMIC_RELAXED);
			for (;;)
				pause();
		}
		for (int wait = 0;
		     sum[1] < processes && wait < (int)strtol(argv[2], NULL, 10) * 100; wait++)
			usleep(10000);
		printf("%ld\n", *sum);
		fflush(stdout);
		sleep((unsigned)strtol(argv[2], NULL, 10));
		return 0;
	}
	return 2;
}
