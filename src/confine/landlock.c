/* Landlock rulesets: see landlock.h. Runs in the box's set-up child, without privilege; nothing it
 * sees is hostile. Straight system calls: the C library has no wrappers. */
#include "confine/landlock.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <linux/landlock.h>

#define STAGE "confine"

/* Rights by the ABI that brought them; the build machine's header may be older than the kernel. */
#define FS_EXECUTE     (1ull << 0)
#define FS_WRITE_FILE  (1ull << 1)
#define FS_READ_FILE   (1ull << 2)
#define FS_READ_DIR    (1ull << 3)
#define FS_MAKE_CHAR   (1ull << 6)
#define FS_MAKE_BLOCK  (1ull << 11)
#define FS_ABI_1       ((1ull << 13) - 1)
#define FS_REFER       (1ull << 13) /* 2: to rename or link between directories */
#define FS_TRUNCATE    (1ull << 14) /* 3 */
#define FS_IOCTL_DEV   (1ull << 15) /* 5 */
#define NET_BIND_TCP   (1ull << 0)  /* 4 */
#define SCOPE_ABSTRACT (1ull << 0)  /* 6 */
#define SCOPE_SIGNAL   (1ull << 1)

/* What a rule on something that is not a directory may name. */
#define FS_FILE (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)

#define CREATE_RULESET_VERSION 1u

/* The kernel's structure as of ABI 6; older kernels take its beginning. */
struct ruleset_attr {
	uint64_t fs, net, scoped;
};
#define ATTR_SIZE_FS	 8
#define ATTR_SIZE_NET	 16
#define ATTR_SIZE_SCOPED 24

struct landlock {
	int fd;
	int abi;
	uint64_t handled; /* file rights; 0: scope only */
};

void landlock_probe(struct landlock_host *ret)
{
	static const struct {
		int abi;
		const char *what;
	} news[] = {
		{2, "renames between directories (all are refused)"},
		{3, "truncation"},
		{5, "ioctls of devices"},
		{6, "signals and abstract sockets"},
	};
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);
	size_t used = 0;

	*ret = (struct landlock_host){.abi = abi > 0 ? (int)abi : 0};
	if (abi < 0 && !err_is_lasting(errno))
		ret->error = errno;
	if (abi <= 0) {
		snprintf(ret->lacks, sizeof(ret->lacks), "everything: %s",
			 errno == EOPNOTSUPP ? "it is switched off at boot (lsm= has no landlock)"
					     : "this kernel was built without it");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(news); i++)
		if (ret->abi < news[i].abi)
			used += (size_t)snprintf(ret->lacks + used, sizeof(ret->lacks) - used,
						 "%s%s", used ? ", " : "", news[i].what);
}

static uint64_t file_rights(int abi)
{
	return FS_ABI_1 | (abi >= 2 ? FS_REFER : 0) | (abi >= 3 ? FS_TRUNCATE : 0) |
	       (abi >= 5 ? FS_IOCTL_DEV : 0);
}

static int create(int abi, uint64_t handled, uint64_t net, bool scoped)
{
	struct ruleset_attr attr = {.fs = handled,
				    .net = net,
				    .scoped =
					    scoped && abi >= 6 ? SCOPE_ABSTRACT | SCOPE_SIGNAL : 0};
	/* Close-on-exec by itself. */
	long fd = syscall(SYS_landlock_create_ruleset, &attr,
			  abi >= 6   ? ATTR_SIZE_SCOPED
			  : abi >= 4 ? ATTR_SIZE_NET
				     : ATTR_SIZE_FS,
			  0);

	return fd < 0 ? -errno : (int)fd;
}

int landlock_new(const struct landlock_host *host, struct landlock **ret, struct pale_err *err)
{
	struct landlock *l;

	if (host->abi <= 0)
		return err_set(err, PALE_E_HOST, STAGE, 0, "no Landlock: it lacks %s", host->lacks);
	l = calloc(1, sizeof(*l));
	if (!l)
		return err_nomem(err, STAGE);
	*l = (struct landlock){.abi = host->abi, .handled = file_rights(host->abi)};
	l->fd = create(l->abi, l->handled, 0, true);
	if (l->fd < 0) {
		int r = err_set(err, PALE_E_HOST, STAGE, -l->fd, "cannot make a Landlock ruleset");

		free(l);
		return r;
	}
	*ret = l;
	return 0;
}

void landlock_free(struct landlock *l)
{
	if (!l)
		return;
	close_fd(&l->fd);
	free(l);
}

int landlock_scope_only(struct landlock *l, struct pale_err *err)
{
	int fd;

	if (l->abi < 6)
		return err_set(err, PALE_E_HOST, STAGE, 0,
			       "this kernel's Landlock (ABI %d) cannot scope signals and sockets: "
			       "Linux 6.12 can",
			       l->abi);
	fd = create(l->abi, 0, 0, true);
	if (fd < 0)
		return err_set(err, PALE_E_HOST, STAGE, -fd, "cannot make a Landlock ruleset");
	close_fd(&l->fd);
	l->fd = fd;
	l->handled = 0;
	return 0;
}

int landlock_files_only(struct landlock *l, struct pale_err *err)
{
	int fd = create(l->abi, l->handled, 0, false);

	if (fd < 0)
		return err_set(err, PALE_E_HOST, STAGE, -fd, "cannot make a Landlock ruleset");
	close_fd(&l->fd);
	l->fd = fd;
	return 0;
}

int landlock_forbid_bind(struct landlock *l, struct pale_err *err)
{
	int fd;

	if (l->abi < 4)
		return 0;
	fd = create(l->abi, l->handled, NET_BIND_TCP, true);
	if (fd < 0)
		return err_set(err, PALE_E_HOST, STAGE, -fd, "cannot make a Landlock ruleset");
	close_fd(&l->fd);
	l->fd = fd;
	return 0;
}

static uint64_t rights_of(enum landlock_access access)
{
	switch (access) {
	case LANDLOCK_READ: return FS_READ_FILE | FS_READ_DIR;
	case LANDLOCK_READ_EXECUTE: return FS_READ_FILE | FS_READ_DIR | FS_EXECUTE;
	case LANDLOCK_READ_WRITE:
		return (FS_ABI_1 | FS_REFER | FS_TRUNCATE) & ~(FS_MAKE_CHAR | FS_MAKE_BLOCK);
	case LANDLOCK_DEVICE:
		return FS_READ_FILE | FS_READ_DIR | FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV;
	}
	return 0;
}

int landlock_allow_path(struct landlock *l, int fd, enum landlock_access access,
			struct pale_err *err)
{
	struct landlock_path_beneath_attr rule = {.parent_fd = fd};
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno,
			       "cannot look at a path for Landlock");
	rule.allowed_access = rights_of(access) & l->handled;
	if (!S_ISDIR(st.st_mode))
		rule.allowed_access &= FS_FILE;
	if (!rule.allowed_access)
		return 0; /* scope only: nothing is refused in the first place */
	if (syscall(SYS_landlock_add_rule, l->fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot add a Landlock rule");
	return 0;
}

int landlock_ruleset(const struct landlock *l)
{
	return l->fd;
}

int landlock_restrict_self(struct landlock *l, struct pale_err *err)
{
	return landlock_restrict_to(l->fd, err);
}

int landlock_restrict_to(int ruleset, struct pale_err *err)
{
	if (syscall(SYS_landlock_restrict_self, ruleset, 0) == 0)
		return 0;
	if (errno == E2BIG)
		return err_set(err, PALE_E_HOST, STAGE, errno,
			       "cannot apply Landlock: 16 sandboxes are around this one already");
	return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot apply Landlock");
}
