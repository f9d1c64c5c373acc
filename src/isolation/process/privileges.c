/* What a box's processes do not have: capabilities, new privileges, the caller's groups, session
 * keyring, signal settings, umask.
 *
 * Runs in the set-up child, and in a zygote's fork, after everything that needs a capability. A
 * failure here ends the process: half-dropped privileges are worse than none dropped. */
#include "process.h"

#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define STAGE		    "confine"
#define KEYCTL_JOIN_SESSION 1
#define KEYCTL_SETPERM	    5
#define SHARED_KEYRING	    "pale-boxes"
#define SHARED_PERMISSIONS  0x3f0a0000 /* possessor: all; its user: view, search */

static int fail(struct pale_err *err, const char *what)
{
	return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot %s", what);
}

/* Signals that the caller ignores or blocks are not the box's business. */
static int reset_signals(struct pale_err *err)
{
	sigset_t none;

	for (int n = 1; n < _NSIG; n++)
		if (n != SIGKILL && n != SIGSTOP)
			(void)signal(n, SIG_DFL); /* glibc keeps two for itself: EINVAL is fine */
	sigemptyset(&none);
	return sigprocmask(SIG_SETMASK, &none, NULL) < 0 ? fail(err, "reset the signal mask") : 0;
}

int privileges_share_keyring(void)
{
	long key = syscall(SYS_keyctl, KEYCTL_JOIN_SESSION, SHARED_KEYRING);

	if (key < 0)
		return -errno;
	return syscall(SYS_keyctl, KEYCTL_SETPERM, key, SHARED_PERMISSIONS) < 0 ? -errno : 0;
}

/* The caller's session keyring holds its keys; where keys are off there is nothing to leave. The
 * kernel lets an ordinary user have 200: with more boxes than that an empty one of several is as
 * good, as the filter lets nobody speak of keyrings. */
static int leave_keyring(bool shared, struct pale_err *err)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION, NULL) >= 0 || errno == ENOSYS ||
	    (errno == EDQUOT && shared))
		return 0;
	fail(err, "get a keyring of the box's own");
	if (errno == EDQUOT)
		err_add(err,
			": this user has as many as it may (remedy: sysctl kernel.keys.maxkeys, "
			"or boxes of a pool, which can share one)");
	return -(int)err->code;
}

int privileges_give_up(const struct plan *plan, bool shared_keyring, struct pale_err *err)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {0};
	struct rlimit core;

	/* With NOROOT locked and no_new_privs no exec gives a capability, whatever the program's
	 * owner, mode or file capabilities are, so the bounding set has nothing left to bound;
	 * emptying it costs 41 calls. The secure bits need CAP_SETPCAP, which the change of id
	 * takes away. */
	if (prctl(PR_SET_SECUREBITS,
		  SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
			  SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED | SECBIT_KEEP_CAPS_LOCKED) < 0)
		return fail(err, "lock the secure bits");
	/* Only root's box has ids to choose from, and groups that it can leave. */
	if (plan->user_range &&
	    (setgroups(0, NULL) < 0 || setresgid(plan->gid, plan->gid, plan->gid) < 0 ||
	     setresuid(plan->uid, plan->uid, plan->uid) < 0))
		return fail(err, "become the box's user");
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return fail(err, "clear the ambient capabilities");
	if (syscall(SYS_capset, &header, none) < 0)
		return fail(err, "drop the capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return fail(err, "set no_new_privs");
	if (leave_keyring(shared_keyring, err) < 0)
		return -(int)err->code;
	/* Before the filter, which keeps it so: see rlimits.c. One who may have none at all cannot
	 * say so, and a handler in the host gets his dumps, in a box or not. */
	if (setrlimit(RLIMIT_CORE, &(struct rlimit){1, 1}) < 0 &&
	    (getrlimit(RLIMIT_CORE, &core) < 0 || core.rlim_max > 0))
		return err_set(err, PALE_E_SYSTEM, STAGE, 0, "cannot limit core dumps");
	umask(022);
	return 0;
}

int privileges_drop(const struct plan *plan, bool shared_keyring, struct pale_err *err)
{
	int r = privileges_give_up(plan, shared_keyring, err);

	if (r < 0)
		return r;
	/* Changing ids cleared it: the box dies with its supervisor. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return fail(err, "tie the box to its supervisor");
	return reset_signals(err);
}
