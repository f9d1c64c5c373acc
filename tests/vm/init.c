/* The first program of the test machine: loads what the root file system needs, puts a writable
 * layer over it and hands over to systemd. Static; runs as root inside the virtual machine only. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void die(const char *what)
{
	printf("init: %s: %s\n", what, strerror(errno));
	reboot(RB_AUTOBOOT);
}

static void load(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/modules/%s.ko", name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return; /* built into this kernel */
	if (syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST)
		die(path);
	close(fd);
}

int main(void)
{
	static const char *const modules[] = {
		"virtio_ring", "virtio",     "virtio_pci_legacy_dev", "virtio_pci_modern_dev",
		"virtio_pci",  "virtio_blk", "crc32c_generic",	      "libcrc32c",
		"erofs",       "overlay",
	};

	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++)
		load(modules[i]);
	mkdir("/dev", 0755);
	mkdir("/lower", 0755);
	mkdir("/rw", 0755);
	mkdir("/new", 0755);
	if (mount("dev", "/dev", "devtmpfs", 0, NULL) < 0 && errno != EBUSY)
		die("devtmpfs");
	if (mount("/dev/vda", "/lower", "erofs", MS_RDONLY, NULL) < 0)
		die("/dev/vda");
	if (mount("rw", "/rw", "tmpfs", 0, "mode=0755") < 0 || mkdir("/rw/up", 0755) < 0 ||
	    mkdir("/rw/work", 0755) < 0)
		die("tmpfs");
	if (mount("root", "/new", "overlay", 0,
		  "lowerdir=/lower,upperdir=/rw/up,workdir=/rw/work") < 0)
		die("overlay");
	mkdir("/new/pale", 0755);
	if (mount("/dev/vdb", "/new/pale", "erofs", MS_RDONLY, NULL) < 0)
		die("/dev/vdb");
	if (mount("/dev", "/new/dev", NULL, MS_MOVE, NULL) < 0 || chdir("/new") < 0 ||
	    mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 || chdir("/") < 0)
		die("switching to the root file system");
	execl("/lib/systemd/systemd", "/sbin/init", (char *)NULL);
	die("systemd");
}
