/* Host facts: see host.h. In the supervisor, before anything is made; a handful of system calls. */
#include "host.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/num.h"
#include "base/str.h"
#include "confine/seccomp.h"

#define STAGE "plan"
#define YAMA  "/proc/sys/kernel/yama/ptrace_scope"

/* The whole id range is mapped into this user namespace only on the host itself, or in a container
 * that was given one; there alone are root's privileges what the backend needs of them. Without an
 * answer there is no box: it would have root's id. */
static int has_id_range(bool *ret, struct pale_err *err)
{
	_cleanup_buf_ struct buf text = BUF_INIT(4096);
	_cleanup_close_ int fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
	unsigned inside, outside, count;
	int r = fd < 0 ? -errno : buf_read_fd(&text, fd);

	if (r < 0 || !text.data)
		return err_set(err, PALE_E_HOST, STAGE, r < 0 ? -r : 0,
			       "cannot read /proc/self/uid_map%s",
			       r == -ENOENT ? "; mount /proc: mount -t proc proc /proc" : "");
	*ret = sscanf(text.data, "%u %u %u", &inside, &outside, &count) == 3 && inside == 0 &&
	       count == UINT32_MAX;
	return 0;
}

/* The kernel's settings belong to the host's root. Who has that id can write them without any
 * capability, through any /proc, also in a user namespace that maps little more than it. */
static int owns_settings(bool *ret, struct pale_err *err)
{
	struct stat st;

	if (stat("/proc/sys", &st) < 0)
		return err_set(err, PALE_E_HOST, STAGE, errno, "cannot look at /proc/sys");
	*ret = st.st_uid == geteuid();
	return 0;
}

static int read_number(const char *path, uint64_t *ret)
{
	_cleanup_buf_ struct buf text = BUF_INIT(64);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 ? -errno : buf_read_fd(&text, fd);

	if (r < 0)
		return r;
	if (!text.data)
		return -EINVAL;
	text.data[strcspn(text.data, "\n")] = '\0';
	return num_parse_u64(text.data, UINT64_MAX, ret);
}

/* What the host lets a supervisor and its box do. A failure of the moment is none of its
 * properties: a box would be made with less than there is, because of it. */
static int probe_kernel(struct host *ret, struct pale_err *err)
{
	uint64_t yama = 0;
	int r = 0;

	/* Only under a filter there can be a listener already, and only trying tells. */
	ret->listener = true;
	if (prctl(PR_GET_SECCOMP) != 0)
		r = seccomp_can_listen(&ret->listener);
	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, -r, "cannot try a seccomp listener");
	r = read_number(YAMA, &yama);
	if (r < 0 && !err_is_lasting(-r))
		return err_set(err, PALE_E_SYSTEM, STAGE, -r, "cannot read " YAMA);
	ret->attach = yama < 3;
	cgroup_probe(&ret->cgroup);
	if (ret->cgroup.error)
		return err_set(err, PALE_E_SYSTEM, STAGE, ret->cgroup.error,
			       "cannot look for control groups");
	landlock_probe(&ret->landlock);
	if (ret->landlock.error)
		return err_set(err, PALE_E_SYSTEM, STAGE, ret->landlock.error,
			       "cannot look for Landlock");
	return 0;
}

int host_probe(struct host *ret, struct pale_err *err)
{
	unsigned major = 0, minor = 0;
	struct utsname uts;
	struct stat st;
	cpu_set_t cpus;

	*ret = (struct host){.uid = geteuid(), .gid = getegid()};
	if (uname(&uts) < 0 || sscanf(uts.release, "%u.%u", &major, &minor) != 2)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno,
			       "cannot tell the kernel's version");
	snprintf(ret->release, sizeof(ret->release), "%s", uts.release);
	ret->kernel = major * 100 + (minor < 100 ? minor : 99);
	if (ret->kernel < 512)
		return err_set(err, PALE_E_HOST, STAGE, 0,
			       "Linux %s is too old: Pale needs 5.12 (mount_setattr) or later",
			       ret->release);
	if (ret->uid == 0) {
		int r = has_id_range(&ret->root, err);

		if (r < 0)
			return r;
	}
	/* By whatever number: what counts is whose it is outside. */
	if (!ret->root) {
		int r = owns_settings(&ret->owns_settings, err);

		if (r < 0)
			return r;
	}
	ret->merged_usr = lstat("/bin", &st) == 0 && S_ISLNK(st.st_mode);
	CPU_ZERO(&cpus);
	ret->processors =
		sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? (unsigned)CPU_COUNT(&cpus) : 1;
	return probe_kernel(ret, err);
}

const char *host_userns_remedy(char *out, size_t size)
{
	static const struct {
		const char *path;
		uint64_t bad;
		const char *remedy;
	} knobs[] = {
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1,
		 "AppArmor restricts user namespaces; install Pale's profile: "
		 "cp " PALE_DATADIR "/apparmor/pale /etc/apparmor.d/ && apparmor_parser -r "
		 "/etc/apparmor.d/pale"},
		{"/proc/sys/kernel/unprivileged_userns_clone", 0,
		 "user namespaces are off for users; sysctl -w kernel.unprivileged_userns_clone=1"},
		{"/proc/sys/user/max_user_namespaces", 0,
		 "user namespaces are off; sysctl -w user.max_user_namespaces=15000"},
		{"/proc/sys/user/max_net_namespaces", 0,
		 "network namespaces are off; sysctl -w user.max_net_namespaces=15000"},
	};
	uint64_t value;

	*out = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(knobs); i++)
		if (read_number(knobs[i].path, &value) == 0 && value == knobs[i].bad) {
			snprintf(out, size, "%s", knobs[i].remedy);
			return out;
		}
	if (access("/proc/self/ns/user", F_OK) < 0)
		snprintf(out, size,
			 "the kernel is built without user namespaces, or /proc is not mounted");
	else if (access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0)
		snprintf(out, size,
			 "this is a container, whose own seccomp filter may refuse namespaces; "
			 "start it with "
			 "--security-opt seccomp=unconfined, or run Pale on the host");
	return out;
}
