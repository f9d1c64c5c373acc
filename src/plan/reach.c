/* The probe of TPROXY and REDIRECT: see reach.h.
 *
 * In the supervisor while it plans, and in the doctor. No list of modules tells it, since they may
 * be part of the kernel, or not be there, or load when they are asked for: only loading the rules
 * does, in a child with namespaces of its own, which takes the better part of a millisecond. So
 * what was found is kept in the state directory, for this kernel. Should it not be true any more,
 * the box's own set-up fails and says so: nothing is weaker for it. */
#include "plan/reach.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audit/audit.h"
#include "base/fd.h"
#include "plan/host.h"

#define STAGE  "plan"
#define MEMORY "network"

static int loads(enum nft_set set)
{
	struct pale_err err = {0};

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return errno;
	return nft_load(set, &err) == 0 ? 0 : err.sys ? err.sys : EIO;
}

int reach_try(enum nft_set set)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return errno;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(loads(set) & 0xff);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

/* What the memory begins with: this kernel, as it was built. */
static void kernel(char ret[static 160])
{
	struct utsname u;

	snprintf(ret, 160, "%s", uname(&u) == 0 ? u.release : "");
	snprintf(ret + strlen(ret), 160 - strlen(ret), " %s\n", u.version);
}

static bool remembered(int dir, enum nft_set *ret)
{
	char want[160], text[192] = "";
	_cleanup_close_ int fd = fd_open_beneath(dir, MEMORY, O_RDONLY, 0);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	kernel(want);
	if (n < 0 || strncmp(text, want, strlen(want)) != 0)
		return false;
	for (int set = 0; set < NFT_SETS; set++)
		if (strcmp(text + strlen(want), nft_set_name((enum nft_set)set)) == 0) {
			*ret = (enum nft_set)set;
			return true;
		}
	return false;
}

static void remember(int dir, enum nft_set set)
{
	char text[192], name[32];
	_cleanup_close_ int fd = -1;

	kernel(text);
	snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s", nft_set_name(set));
	snprintf(name, sizeof(name), "%s.%d", MEMORY, (int)getpid());
	fd = fd_open_beneath(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
	/* Whoever runs next tries again if it cannot be kept. */
	if (fd >= 0 &&
	    (fd_write_all(fd, text, strlen(text)) < 0 || renameat(dir, name, dir, MEMORY) < 0))
		unlinkat(dir, name, 0);
}

void reach_forget(void)
{
	struct pale_err ignored;
	_cleanup_close_ int dir = audit_state_dir(NULL, 0, &ignored);

	if (dir >= 0)
		unlinkat(dir, MEMORY, 0);
}

static int fail(int tproxy, int redirect, struct pale_err *err)
{
	char remedy[256];

	err_set(err, PALE_E_HOST, STAGE, 0,
		"network.allow needs nftables with TPROXY (here: %s) or REDIRECT (here: %s) in a "
		"network namespace",
		strerror(tproxy), strerror(redirect));
	if (tproxy == EPERM || tproxy == ENOSPC || tproxy == EACCES)
		host_userns_remedy(remedy, sizeof(remedy));
	else
		snprintf(remedy, sizeof(remedy),
			 "the kernel needs the modules %s, or %s: modprobe them, and list them in "
			 "/etc/modules-load.d/pale.conf",
			 nft_set_modules(NFT_TPROXY), nft_set_modules(NFT_REDIRECT));
	if (*remedy)
		err_add(err, "; %s", remedy);
	return -PALE_E_HOST;
}

int reach_find(enum nft_set *ret, struct pale_err *err)
{
	struct pale_err ignored;
	_cleanup_close_ int dir = audit_state_dir(NULL, 0, &ignored);
	int errors[NFT_SETS];

	if (dir >= 0 && remembered(dir, ret))
		return 0;
	for (int set = 0; set < NFT_SETS; set++) {
		errors[set] = reach_try((enum nft_set)set);
		if (errors[set] == 0) {
			*ret = (enum nft_set)set;
			if (dir >= 0)
				remember(dir, *ret);
			return 0;
		}
	}
	return fail(errors[NFT_TPROXY], errors[NFT_REDIRECT], err);
}
