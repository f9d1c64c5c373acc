/* In a box: says what holds it, so that two boxes can be compared, and tries what must not work.
 *
 * usage: canary SECRET-FILE PORT ABSTRACT-SOCKET
 * Prints lines that are the same for each box of a policy, and a line "HOLE ..." for each attempt
 * that worked. Linked statically: it runs in boxes in which something is missing. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static void show_file(const char *path, const char *const *only)
{
	char line[4096];
	FILE *f = fopen(path, "re");

	if (!f) {
		printf("%s: %s\n", path, strerror(errno));
		return;
	}
	while (fgets(line, sizeof(line), f)) {
		bool shown = !only;

		for (size_t i = 0; only && only[i]; i++)
			shown |= strncmp(line, only[i], strlen(only[i])) == 0;
		if (shown)
			printf("%s: %s", path, line);
	}
	fclose(f);
}

static void show_limits(void)
{
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		struct rlimit l = {0};

		getrlimit((__rlimit_resource_t)i, &l);
		printf("limit %d: %llu %llu\n", i, (unsigned long long)l.rlim_cur,
		       (unsigned long long)l.rlim_max);
	}
}

static void show_descriptors(void)
{
	for (int fd = 0; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			printf("descriptor %d\n", fd);
}

/* How often Landlock has restricted us: sixteen times is all that the kernel takes. */
static void show_landlock(void)
{
	struct {
		unsigned long long fs;
	} attr = {1ULL << 13}; /* make symbolic links in directories that allow it: none */
	int fd = (int)syscall(444, &attr, sizeof(attr), 0), n = 0;

	if (fd < 0) {
		printf("landlock: %s\n", strerror(errno));
		return;
	}
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	while (n < 20 && syscall(446, fd, 0) == 0)
		n++;
	printf("landlock: %d more layers\n", n);
}

static void hole(bool open, const char *what)
{
	if (open)
		printf("HOLE %s\n", what);
}

static bool connects(const struct sockaddr *to, socklen_t len)
{
	int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool done = fd >= 0 && connect(fd, to, len) == 0;

	if (fd >= 0)
		close(fd);
	return done;
}

static void try_network(const char *port, const char *name)
{
	struct sockaddr_in in = {.sin_family = AF_INET,
				 .sin_port = htons((unsigned short)strtol(port, NULL, 10)),
				 .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct sockaddr_un un = {.sun_family = AF_UNIX};

	hole(connects((struct sockaddr *)&in, sizeof(in)), "a port of the host");
	snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "%s", name);
	hole(connects((struct sockaddr *)&un,
		      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))),
	     "an abstract socket of the host");
}

static void try_files(const char *secret)
{
	hole(access(secret, F_OK) == 0, "a file of the host");
	hole(open("/etc/shadow", O_RDONLY | O_CLOEXEC) >= 0, "/etc/shadow");
	hole(open("/usr/canary", O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0, "writing to /usr");
	hole(open("/canary", O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0, "writing to /");
	hole(open("/proc/sys/kernel/hostname", O_WRONLY | O_CLOEXEC) >= 0, "writing to /proc/sys");
	hole(open("/proc/1/mem", O_RDWR | O_CLOEXEC) >= 0, "memory of the first process");
	hole(access("/proc/1/root/etc", F_OK) == 0, "the root of the first process");
}

static void try_kernel(void)
{
	hole(mount("none", "/tmp", "tmpfs", 0, NULL) == 0, "mount");
	hole(unshare(CLONE_NEWUSER) == 0, "unshare");
	hole(ptrace(PTRACE_ATTACH, 1, 0, 0) == 0, "ptrace");
	hole(syscall(SYS_keyctl, 0, -3, 1) >= 0, "keyctl");
	hole(syscall(SYS_bpf, 5, NULL, 0) >= 0 || errno == EFAULT || errno == EINVAL, "bpf");
	hole(syscall(SYS_io_uring_setup, 1, NULL) >= 0 || errno == EFAULT, "io_uring");
	hole(syscall(SYS_perf_event_open, NULL, 0, 0, 0, 0) >= 0 || errno == EFAULT, "perf");
	hole(chroot("/tmp") == 0, "chroot");
	hole(sethostname("hole", 4) == 0, "sethostname");
	hole(setuid(0) == 0 && getuid() == 0, "setuid");
}

int main(int argc, char **argv)
{
	static const char *const status[] = {
		"Uid:",	   "Gid:",    "Groups:",     "Cap",    "NoNewPrivs:", "Seccomp",
		"SigBlk:", "SigIgn:", "SigCgt:",     "Umask:", "TracerPid:",  "Cpus_allowed_list:",
		"NStgid:", "NSsid:",  "Speculation", NULL};
	char host[65] = "";

	if (argc != 4)
		return 2;
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	show_descriptors();
	show_limits();
	show_file("/proc/self/status", status);
	show_file("/proc/self/mountinfo", NULL);
	show_file("/proc/self/cgroup", NULL);
	show_file("/proc/self/uid_map", NULL);
	show_file("/proc/self/setgroups", NULL);
	show_file("/proc/self/oom_score_adj", NULL);
	show_file("/proc/net/route", NULL);
	show_file("/proc/sys/user/max_user_namespaces", NULL);
	gethostname(host, sizeof(host) - 1);
	printf("name %s, dumpable %d\n", host, prctl(PR_GET_DUMPABLE));
	for (char **e = environ; *e; e++)
		printf("variable %s\n", *e);
	try_files(argv[1]);
	try_network(argv[2], argv[3]);
	try_kernel();
	show_landlock();
	printf("done\n");
	return 0;
}
