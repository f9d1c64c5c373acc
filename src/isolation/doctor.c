/* pale doctor: see doctor.h.
 *
 * Runs in the caller's process with its privileges and no hostile input. Whatever changes a process
 * for good (a namespace, a filter, a ruleset) is tried in a forked child, which tells by its exit
 * status the errno of what failed. The last check builds a whole box of the default policy up to
 * its gate, so that "can be enforced" is not a conclusion but a try. */
#include "doctor.h"

#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "audit/audit.h"
#include "audit/ulid.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/wrap.h"
#include "confine/core_sched.h"
#include "confine/landlock.h"
#include "confine/mount.h"
#include "confine/seccomp.h"
#include "confine/speculation.h"
#include "confine/userns.h"
#include "isolation/isolation.h"
#include "plan/host.h"
#include "plan/plan.h"
#include "plan/reach.h"

#define STAGE "isolation"

static const char *const state_names[] = {"ok", "weaker", "missing", "not needed"};

struct examined {
	struct doctor *d;
	struct host host;
	bool host_known;
	bool userns; /* can be made, so that what needs one is worth trying */
};

/* --- notes -------------------------------------------------------------------------------------
 */

static struct doctor_check *note(struct examined *x, const char *key, bool required,
				 enum doctor_state state, const char *fmt, ...) _printf_(5, 6);
static struct doctor_check *note(struct examined *x, const char *key, bool required,
				 enum doctor_state state, const char *fmt, ...)
{
	struct doctor_check *c = &x->d->checks[x->d->n < DOCTOR_CHECKS - 1 ? x->d->n++ : x->d->n];
	va_list ap;

	*c = (struct doctor_check){.key = key, .state = state, .required = required};
	va_start(ap, fmt);
	vsnprintf(c->what, sizeof(c->what), fmt, ap);
	va_end(ap);
	return c;
}

static void remedy(struct doctor_check *c, const char *fmt, ...) _printf_(2, 3);
static void remedy(struct doctor_check *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->remedy, sizeof(c->remedy), fmt, ap);
	va_end(ap);
}

/* --- trying ------------------------------------------------------------------------------------
 */

/* Runs fn in a child: 0 or the errno that it returned. */
static int try(int (*fn)(const void *arg), const void *arg)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return errno;
	if (pid == 0) {
		int r;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		r = fn(arg);
		_exit(r < 0 ? -r & 0xff : r & 0xff);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

static int enter_userns(int more)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (unshare(CLONE_NEWUSER | more) < 0)
		return errno;
	return userns_map_self(uid, gid, 0, 0, NULL) < 0 ? EPERM : 0;
}

static int try_userns(const void *arg)
{
	(void)arg;
	return enter_userns(0);
}

static int try_namespace(const void *arg)
{
	const int *flag = arg;
	int r = enter_userns(0);

	if (r)
		return r;
	return unshare(*flag) < 0 ? errno : 0;
}

static int try_mount(const void *arg)
{
	static const char *const none[] = {NULL}, *const tmpfs[] = {"size", "1m", NULL, NULL},
				 *const devpts[] = {"newinstance", NULL, "ptmxmode", "0666", NULL};
	const char *type = arg;
	int r = enter_userns(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC);
	pid_t pid;

	if (r)
		return r;
	/* A proc shows the pid namespace that its maker is in. */
	pid = fork();
	if (pid < 0)
		return errno;
	if (pid == 0) {
		r = mount_new(type,
			      strcmp(type, "tmpfs") == 0    ? tmpfs
			      : strcmp(type, "devpts") == 0 ? devpts
							    : none,
			      MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
		_exit(r < 0 ? -r & 0xff : 0);
	}
	while (waitpid(pid, &r, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(r) ? WEXITSTATUS(r) : EIO;
}

static int try_overlay(const void *arg)
{
	static const char *const tmpfs[] = {"size", "1m", NULL, NULL};
	_cleanup_close_ int tree = -1;
	int r = enter_userns(CLONE_NEWNS);

	(void)arg;
	if (r)
		return r;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return errno;
	tree = mount_new("tmpfs", tmpfs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (tree < 0)
		return -tree;
	r = mount_move(tree, AT_FDCWD, "/tmp");
	if (r < 0)
		return -r;
	if (fchdir(tree) < 0 || mkdir("l", 0700) < 0 || mkdir("u", 0700) < 0 ||
	    mkdir("w", 0700) < 0)
		return errno;
	r = mount_overlay("l", "u", "w");
	return r < 0 ? -r : 0;
}

static int try_idmap(const void *arg)
{
	_cleanup_close_ int userns = -1, usr = open("/usr", O_PATH | O_CLOEXEC), tree = -1;
	int r;

	(void)arg;
	userns = userns_swapped(0x70000000, 1000, 0, 1000, 0, NULL);
	if (userns < 0)
		return EPERM;
	tree = usr < 0 ? -errno : mount_clone(usr, true);
	if (tree < 0)
		return -tree;
	r = mount_restrict(tree, 0, userns, true);
	return r < 0 ? -r : 0;
}

static int try_seccomp(const void *arg)
{
	int listener = -1, r;

	(void)arg;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return errno;
	r = seccomp_install(PROFILE_DEFAULT, 0, &listener);
	return r < 0 ? -r : listener < 0 ? EINVAL : 0;
}

static int try_landlock(const void *arg)
{
	const struct landlock_host *host = arg;
	_cleanup_landlock_ struct landlock *l = NULL;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return errno;
	if (landlock_new(host, &l, NULL) < 0 || landlock_restrict_self(l, NULL) < 0)
		return EOPNOTSUPP;
	/* It has to deny, too. */
	return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC) < 0 ? 0 : ENOTRECOVERABLE;
}

static int try_pty(const void *arg)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

	(void)arg;
	return master < 0 || grantpt(master) < 0 || unlockpt(master) < 0 ? errno : 0;
}

/* --- the checks --------------------------------------------------------------------------------
 */

static void check_kernel(struct examined *x)
{
	struct pale_err err;
	struct utsname uts;

	x->host_known = host_probe(&x->host, &err) == 0;
	if (x->host_known) {
		note(x, "kernel", true, DOCTOR_OK, "Linux %s", x->host.release);
		return;
	}
	uname(&uts);
	remedy(note(x, "kernel", true, DOCTOR_MISSING, "%s", err.message),
	       "boot Linux 5.13 or later; 6.12 or later has all that Pale can use");
}

static void check_userns(struct examined *x)
{
	int r = try(try_userns, NULL);
	struct doctor_check *c;

	x->userns = r == 0;
	if (r == 0) {
		note(x, "user namespaces", true, DOCTOR_OK, "%s can make one",
		     geteuid() == 0 ? "root" : "this user");
		return;
	}
	c = note(x, "user namespaces", true, DOCTOR_MISSING, "refused: %s", strerror(r));
	if (getenv("PALE_BOX")) {
		remedy(c, "this is a box of Pale itself: its policy has to say kernel: {profile: "
			  "nested}");
		return;
	}
	host_userns_remedy(c->remedy, sizeof(c->remedy));
	if (!*c->remedy)
		remedy(c, "an outer sandbox or container refuses it; run Pale outside of it");
}

static void check_namespaces(struct examined *x)
{
	static const struct {
		const char *name;
		int flag;
		const char *config;
	} all[] = {
		{"mount", CLONE_NEWNS, "NAMESPACES"}, {"pid", CLONE_NEWPID, "PID_NS"},
		{"net", CLONE_NEWNET, "NET_NS"},      {"ipc", CLONE_NEWIPC, "IPC_NS"},
		{"uts", CLONE_NEWUTS, "UTS_NS"},      {"cgroup", CLONE_NEWCGROUP, "CGROUPS"},
	};
	char good[64] = "", bad[160] = "", config[64] = "";
	struct doctor_check *c;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		int r = try(try_namespace, &all[i].flag);
		size_t n = strlen(r ? bad : good);

		if (r)
			snprintf(bad + n, sizeof(bad) - n, "%s%s: %s", n ? ", " : "", all[i].name,
				 strerror(r));
		else
			snprintf(good + n, sizeof(good) - n, "%s%s", n ? ", " : "", all[i].name);
		if (r && !*config)
			snprintf(config, sizeof(config), "%s", all[i].config);
	}
	if (!*bad) {
		note(x, "namespaces", true, DOCTOR_OK, "%s", good);
		return;
	}
	c = note(x, "namespaces", true, DOCTOR_MISSING, "%s", bad);
	host_userns_remedy(c->remedy, sizeof(c->remedy));
	if (!*c->remedy)
		remedy(c, "see /proc/sys/user/max_*_namespaces; the kernel needs CONFIG_%s",
		       config);
}

static void check_mount(struct examined *x, const char *key, const char *type, const char *help)
{
	int r = try(try_mount, type);

	if (r == 0)
		note(x, key, true, DOCTOR_OK, "a %s of the box's own can be mounted", type);
	else
		remedy(note(x, key, true, DOCTOR_MISSING, "cannot mount %s: %s", type, strerror(r)),
		       "%s", help);
}

static void check_mounts(struct examined *x)
{
	int r;

	check_mount(
		x, "proc", "proc",
		"something is mounted over parts of /proc, as container engines do: start the "
		"container with an unmasked /proc (docker: --security-opt systempaths=unconfined; "
		"kubernetes: procMount: Unmasked), or run Pale on the host");
	check_mount(x, "tmpfs", "tmpfs", "the kernel needs CONFIG_TMPFS");
	check_mount(x, "pty", "devpts", "the kernel needs CONFIG_UNIX98_PTYS");
	r = try(try_pty, NULL);
	if (r)
		note(x, "terminal", false, DOCTOR_WEAKER, "no pty outside the box: %s",
		     strerror(r));
	r = try(try_overlay, NULL);
	if (r == 0)
		note(x, "overlay", true, DOCTOR_OK,
		     "copy-on-write mounts work in a user namespace");
	else
		remedy(note(x, "overlay", true, DOCTOR_MISSING, "cannot mount overlay: %s",
			    strerror(r)),
		       "%s",
		       r == ENODEV
			       ? "modprobe overlay, and list it in /etc/modules-load.d/pale.conf"
			       : "Linux 5.11 or later lets users mount it");
	if (!x->host.root) {
		note(x, "idmapped mounts", false, DOCTOR_UNUSED,
		     "a user's box has the user's own id: owners show unchanged");
		return;
	}
	r = try(try_idmap, NULL);
	if (r == 0)
		note(x, "idmapped mounts", true, DOCTOR_OK,
		     "owners on /usr's file system show unchanged");
	else
		remedy(note(x, "idmapped mounts", true, DOCTOR_MISSING, "refused for /usr: %s",
			    strerror(r)),
		       "its file system lacks them in this kernel; use Linux 5.19 or later "
		       "(overlay), 6.3 "
		       "(tmpfs), or run Pale as an ordinary user");
}

static void check_network(struct examined *x)
{
	int tproxy = reach_try(NFT_TPROXY), redirect = tproxy ? reach_try(NFT_REDIRECT) : 0;
	struct doctor_check *c;

	if (tproxy == 0) {
		note(x, "network rules", false, DOCTOR_OK,
		     "every connection of a box can be brought to its broker: %s",
		     nft_set_name(NFT_TPROXY));
	} else if (redirect == 0) {
		c = note(x, "network rules", false, DOCTOR_WEAKER,
			 "%s; %s is refused: %s. The same is enforced, at more cost a connection",
			 nft_set_name(NFT_REDIRECT), nft_set_name(NFT_TPROXY), strerror(tproxy));
		remedy(c, "the kernel needs the modules %s", nft_set_modules(NFT_TPROXY));
	} else {
		c = note(x, "network rules", false, DOCTOR_MISSING,
			 "%s is refused: %s; %s: %s. Policies with network.allow do not start",
			 nft_set_name(NFT_TPROXY), strerror(tproxy), nft_set_name(NFT_REDIRECT),
			 strerror(redirect));
		remedy(c,
		       "the kernel needs the modules %s, or %s: modprobe them, and list them in "
		       "/etc/modules-load.d/pale.conf",
		       nft_set_modules(NFT_TPROXY), nft_set_modules(NFT_REDIRECT));
	}
}

static void check_seccomp(struct examined *x)
{
	int r = try(try_seccomp, NULL);

	if (r == 0)
		note(x, "seccomp", true, DOCTOR_OK, "filter with user notification");
	else if (r == EBUSY)
		remedy(note(x, "seccomp", true, DOCTOR_MISSING, "an outer sandbox listens already"),
		       "a process can have one listener: run Pale outside of the other sandbox, or "
		       "let refusals go "
		       "unlogged with best_effort: [events]");
	else
		remedy(note(x, "seccomp", true, DOCTOR_MISSING, "refused: %s", strerror(r)),
		       "the kernel needs CONFIG_SECCOMP_FILTER and Linux 5.5 or later");
}

static void check_landlock(struct examined *x)
{
	const struct landlock_host *host = &x->host.landlock;
	int r;

	if (!host->abi) {
		remedy(note(x, "Landlock", true, DOCTOR_MISSING,
			    "not in this kernel, or switched off"),
		       "boot with lsm=landlock in front of what /sys/kernel/security/lsm lists "
		       "(Linux 5.13 or "
		       "later), or allow it to be missing: best_effort: [landlock]");
		return;
	}
	r = try(try_landlock, host);
	if (r)
		note(x, "Landlock", true, DOCTOR_MISSING, "ABI %d, but it does not deny: %s",
		     host->abi, strerror(r));
	else if (host->lacks[0])
		remedy(note(x, "Landlock", false, DOCTOR_WEAKER, "ABI %d; lacks %s", host->abi,
			    host->lacks),
		       "a later kernel (ABI 6: Linux 6.12); the mounts and namespaces hold without "
		       "it");
	else
		note(x, "Landlock", true, DOCTOR_OK, "ABI %d", host->abi);
}

/* Nothing of the default policy depends on these; kernel.speculation and the like ask for them. */
static void check_side_channels(struct examined *x)
{
	char can[64] = "", cannot[64] = "";
	struct speculation_host host;
	struct doctor_check *c;
	struct pale_err err;
	int lacks = -1;

	if (speculation_probe(&host, &err) < 0) {
		note(x, "speculation", false, DOCTOR_WEAKER, "%.200s", err.message);
		return;
	}
	for (int i = 0; i < SPECULATION_L1D_FLUSH; i++) {
		bool absent = host.state[i] == SPECULATION_ABSENT;
		char *list = absent ? cannot : can;

		if (absent && lacks < 0)
			lacks = i;
		snprintf(list + strlen(list), 64 - strlen(list), "%s%s", *list ? ", " : "",
			 speculation_name((enum speculation_control)i));
	}
	if (lacks < 0)
		note(x, "speculation", false, DOCTOR_OK, "can be restricted for a box: %s", can);
	else
		remedy(note(x, "speculation", false, DOCTOR_WEAKER,
			    "the processor is affected and cannot be restrained for a box: "
			    "%s%s%s; policies with kernel: {speculation: strict} do not start",
			    cannot, *can ? "; it can for: " : "", can),
		       "%s", speculation_remedy((enum speculation_control)lacks));
	switch (host.state[SPECULATION_L1D_FLUSH]) {
	case SPECULATION_UNAFFECTED:
		note(x, "L1D flush", false, DOCTOR_UNUSED, "the processor is not affected (L1TF)");
		break;
	case SPECULATION_ABSENT:
		c = note(x, "L1D flush", false, DOCTOR_WEAKER,
			 "not offered: policies with kernel: {l1d_flush: true} do not start");
		remedy(c, "%s", speculation_remedy(SPECULATION_L1D_FLUSH));
		break;
	case SPECULATION_BY_HOST:
	case SPECULATION_BY_PROCESS:
		note(x, "L1D flush", false, DOCTOR_OK, "a box can ask for it");
		break;
	}
}

static void check_core_scheduling(struct examined *x)
{
	enum core_sched_state state;
	struct doctor_check *c;
	struct pale_err err;

	if (core_sched_probe(&state, &err) < 0) {
		note(x, "core scheduling", false, DOCTOR_WEAKER, "%.200s", err.message);
		return;
	}
	switch (state) {
	case CORE_SCHED_OFFERED:
		note(x, "core scheduling", false, DOCTOR_OK, "a box can have cores to itself");
		break;
	case CORE_SCHED_NO_THREADS:
		note(x, "core scheduling", false, DOCTOR_UNUSED,
		     "no core here runs two threads at a time, as far as this kernel can see");
		break;
	case CORE_SCHED_ABSENT:
		c = note(x, "core scheduling", false, DOCTOR_WEAKER,
			 "not in this kernel, and cores run two threads at a time: policies with "
			 "kernel: {core_scheduling: true} do not start");
		remedy(c, "a kernel with CONFIG_SCHED_CORE (Linux 5.14 or later), or no "
			  "simultaneous multithreading: echo off > "
			  "/sys/devices/system/cpu/smt/control");
		break;
	}
}

/* The probe says why and what to do; under systemd there is a file to install. */
static void cgroup_remedy(struct doctor_check *c)
{
	struct stat st;

	if (geteuid() != 0 && stat("/run/systemd/system", &st) == 0)
		remedy(c, "mkdir -p /etc/systemd/system/user@.service.d && cp " PALE_DATADIR
			  "/systemd/pale-delegate.conf /etc/systemd/system/user@.service.d/ && "
			  "systemctl "
			  "daemon-reload, then log in anew");
}

static void check_controller(struct examined *x, const char *key, bool there, const char *instead)
{
	if (there)
		note(x, key, false, DOCTOR_OK,
		     "counted and limited by the kernel, for the whole box");
	else
		note(x, key, false, DOCTOR_WEAKER, "%s", instead);
}

static void check_cgroup(struct examined *x)
{
	static const char *const kinds[] = {"none", "v1", "v2", "v2, a scope of systemd's"};
	const struct cgroup_host *g = &x->host.cgroup;
	struct cgroup_limits limits = {
		.memory_bytes = g->memory ? 64u << 20 : 0,
		.processes = g->pids ? 16 : 0,
		.cpus_milli = g->cpu ? 1000 : 0,
	};
	struct cgroup *group = NULL;
	bool works = g->kind != CGROUP_NONE;
	char id[AUDIT_ID_SIZE];
	struct pale_err err = {0};
	struct doctor_check *c;

	if (works && g->kind != CGROUP_V2_SYSTEMD && !g->vacate) {
		works = ulid_make(id) == 0 && cgroup_create(g, id, &limits, &group, &err) == 0;
		if (group)
			(void)!cgroup_destroy(group, &err);
	}
	if (!works) {
		c = note(x, "cgroup", false, DOCTOR_WEAKER, "%s",
			 err.code  ? err.message
			 : *g->why ? g->why
				   : "none can be made");
		cgroup_remedy(c);
	} else {
		c = note(x, "cgroup", false, *g->why ? DOCTOR_WEAKER : DOCTOR_OK, "%s%s%s",
			 kinds[g->kind], *g->why ? "; " : "", g->why);
		if (*g->why)
			cgroup_remedy(c);
	}
	check_controller(
		x, "  memory", works && g->memory,
		"RLIMIT_DATA a process, tmpfs sizes and the supervisor's sampling instead: several "
		"processes can pass the limit together for milliseconds");
	check_controller(x, "  processes", works && g->pids,
			 "RLIMIT_NPROC in the box's user namespace instead, which is exact");
	check_controller(x, "  cpu time", works && g->cputime,
			 "the supervisor's sampling and RLIMIT_CPU instead");
	check_controller(x, "  cpu share", works && g->cpu,
			 "processor affinity instead: whole processors only");
}

static void check_state(struct examined *x)
{
	char path[200] = "", name[64];
	struct pale_err err;
	_cleanup_close_ int dir = audit_state_dir(path, sizeof(path), &err);
	_cleanup_close_ int file = -1;
	char quoted[160];

	if (dir < 0) {
		remedy(note(x, "audit log", true, DOCTOR_MISSING, "%.230s", err.message),
		       "without it nothing runs: set PALE_STATE_DIR to a directory of your own");
		return;
	}
	snprintf(name, sizeof(name), ".doctor-%d", (int)getpid());
	file = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	str_escape_into(quoted, sizeof(quoted), path, strlen(path));
	if (file < 0 || write(file, "x", 1) != 1 || fdatasync(file) < 0)
		remedy(note(x, "audit log", true, DOCTOR_MISSING, "cannot write to %s: %s", quoted,
			    strerror(errno)),
		       "without it nothing runs: free space there, or set PALE_STATE_DIR");
	else
		note(x, "audit log", true, DOCTOR_OK, "%s can be written to", quoted);
	unlinkat(dir, name, 0);
}

/* The proof: a box of the default policy, built up to its gate. */
static int build_box(struct pale_err *err)
{
	static const char *const argv[] = {"true", NULL};
	static char *const env[] = {"PATH=/usr/bin:/bin", NULL};
	_cleanup_policy_ struct policy *policy = NULL;
	_cleanup_plan_ struct plan *plan = NULL;
	struct plan_request request = {.argv = argv, .env = env, .cwd = "/"};
	struct box box = BOX_INIT;
	int r = policy_new(&policy, err);

	if (r < 0)
		return r;
	request.policy = policy;
	r = plan_make(&request, &plan, err);
	if (r < 0)
		return r;
	/* Whether it can be put into a group was tried above. */
	plan->use_cgroup = plan->join_cgroup = false;
	r = isolation_start(plan, NULL, -1, NULL, &box, err);
	if (r == 0)
		r = isolation_ready(plan, &box, err);
	isolation_done(&box);
	return r;
}

static void check_box(struct examined *x)
{
	struct pale_err err = {0};

	if (build_box(&err) == 0)
		note(x, "a box", true, DOCTOR_OK, "built with the default policy, every layer on");
	else
		note(x, "a box", true, DOCTOR_MISSING, "%.230s", err.message);
}

int doctor_run(struct doctor *ret, struct pale_err *err)
{
	struct examined x = {.d = ret};

	(void)err;
	*ret = (struct doctor){0};
	check_kernel(&x);
	check_userns(&x);
	if (x.userns && x.host_known) {
		check_namespaces(&x);
		check_mounts(&x);
		check_network(&x);
	}
	check_seccomp(&x);
	if (x.host_known) {
		check_landlock(&x);
		check_cgroup(&x);
	}
	check_side_channels(&x);
	check_core_scheduling(&x);
	check_state(&x);
	if (x.userns && x.host_known)
		check_box(&x);
	ret->enforceable = true;
	for (size_t i = 0; i < ret->n; i++)
		if (ret->checks[i].required && ret->checks[i].state == DOCTOR_MISSING)
			ret->enforceable = false;
	return 0;
}

/* --- printing ----------------------------------------------------------------------------------
 */

void doctor_print(const struct doctor *d, FILE *out, bool colour)
{
	static const char *const codes[] = {"\033[32m", "\033[33m", "\033[31m", "\033[2m"};
	enum { KEY = 16, STATE = 10, INDENT = KEY + 2 + STATE + 2 };

	for (size_t i = 0; i < d->n; i++) {
		const struct doctor_check *c = &d->checks[i];

		fprintf(out, "%-*s  %s%-*s%s  ", KEY, c->key, colour ? codes[c->state] : "", STATE,
			state_names[c->state], colour ? "\033[0m" : "");
		wrap_print(out, c->what, INDENT, 100);
		if (*c->remedy) {
			fprintf(out, "%*s  %-*s  ", KEY, "", STATE, "remedy:");
			wrap_print(out, c->remedy, INDENT, 100);
		}
	}
	fprintf(out, "\n%s\n",
		d->enforceable
			? "The default policy can be enforced here."
			: "The default policy cannot be enforced here: nothing runs with it.");
}

json_t *doctor_to_json(const struct doctor *d)
{
	json_t *checks = json_array();

	for (size_t i = 0; i < d->n; i++) {
		const struct doctor_check *c = &d->checks[i];
		json_t *o =
			json_pack("{ss ss sb so}", "check", c->key + strspn(c->key, " "), "state",
				  state_names[c->state], "required", c->required, "what",
				  audit_text(c->what, strlen(c->what), sizeof(c->what)));

		if (*c->remedy)
			json_object_set_new(
				o, "remedy",
				audit_text(c->remedy, strlen(c->remedy), sizeof(c->remedy)));
		json_array_append_new(checks, o);
	}
	return json_pack("{sb so}", "enforceable", d->enforceable, "checks", checks);
}
