/* The floor: what a box with Pale's namespaces and mounts costs at the least, with nothing on top.
 *
 * One clone3 with user, mount, pid, network, ipc, uts and cgroup namespaces; a tmpfs root with the
 * host's /usr read-only, proc, a small dev and a tmp; loopback up; pivot_root; exec. No limits, no
 * log, no seccomp, no Landlock, no first process: `pale run` is compared with it, and it protects
 * nobody. Runs for a measurement, as root or not; its only input is its command line. */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROOT_RANGE 0x7fff0000u /* host ids for root's boxes: beyond those that Pale hands out */

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
	_exit(125);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		die(path);
	close(fd);
}

static void map_ids(pid_t pid, unsigned uid, unsigned gid)
{
	char path[64], text[64];
	const char *files[] = {"uid_map", "gid_map"};

	if (uid != 0) {
		snprintf(path, sizeof(path), "/proc/%d/setgroups", pid);
		put(path, "deny");
	}
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, files[i]);
		if (uid == 0)
			snprintf(text, sizeof(text), "0 %u 65536", ROOT_RANGE);
		else
			snprintf(text, sizeof(text), "%u %u 1", i ? gid : uid, i ? gid : uid);
		put(path, text);
	}
}

static void mount_at(const char *source, const char *target, const char *type, unsigned long flags,
		     const char *data)
{
	if (mount(source, target, type, flags, data) < 0)
		die(target);
}

static void make_root(void)
{
	static const char *const links[][2] = {{"usr/bin", "bin"},
					       {"usr/sbin", "sbin"},
					       {"usr/lib", "lib"},
					       {"usr/lib64", "lib64"}};
	static const char *const devices[] = {"null", "zero", "full", "random", "urandom", "tty"};
	struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
						   MOUNT_ATTR_NODEV};
	char from[64], to[64];

	mount_at(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	mount_at("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=64m");
	if (chdir("/tmp") < 0)
		die("/tmp");
	mkdir("usr", 0755);
	mount_at("/usr", "usr", NULL, MS_BIND | MS_REC, NULL);
	if (syscall(SYS_mount_setattr, AT_FDCWD, "usr", AT_RECURSIVE, &read_only,
		    sizeof(read_only)) < 0)
		die("mount_setattr");
	for (size_t i = 0; i < 4; i++)
		if (symlink(links[i][0], links[i][1]) < 0)
			die(links[i][1]);
	mkdir("proc", 0755);
	mkdir("dev", 0755);
	mkdir("tmp", 01777);
	mkdir("etc", 0755);
	mount_at("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); i++) {
		snprintf(from, sizeof(from), "/dev/%s", devices[i]);
		snprintf(to, sizeof(to), "dev/%s", devices[i]);
		close(open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
		mount_at(from, to, NULL, MS_BIND, NULL);
	}
	mount_at("tmpfs", "tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777,size=64m");
	if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		die("pivot_root");
}

static void loopback_up(void)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		die("lo");
	close(fd);
}

int main(int argc, char **argv)
{
	unsigned uid = geteuid(), gid = getegid();
	struct clone_args args = {
		.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
			 CLONE_NEWUTS | CLONE_NEWCGROUP,
		.exit_signal = SIGCHLD,
	};
	int go[2], status;
	char byte;
	pid_t pid;

	if (argc < 2) {
		fprintf(stderr, "usage: floor COMMAND [ARG...]\n");
		return 125;
	}
	if (pipe2(go, O_CLOEXEC) < 0)
		die("pipe");
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		die("clone3");
	if (pid == 0) {
		close(go[1]);
		if (read(go[0], &byte, 1) != 1)
			_exit(125);
		if (uid == 0 && (setgid(0) < 0 || setuid(0) < 0))
			die("setuid");
		make_root();
		loopback_up();
		if (uid == 0 && (setgid(1000) < 0 || setuid(1000) < 0))
			die("setuid");
		execvp(argv[1], argv + 1);
		die(argv[1]);
	}
	close(go[0]);
	map_ids(pid, uid, gid);
	if (write(go[1], "", 1) != 1)
		die("write");
	if (waitpid(pid, &status, 0) < 0)
		die("wait");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
