/* A supervisor whose boxes lack a mechanism, for the tests of `pale verify`: with it in the place
 * of pale-box, attacks succeed, and verify has to say so. It is pale-box, but for functions that
 * the linker leads here first (--wrap): nothing of this is in a program that is shipped.
 * PALE_WITHOUT=NAME,... says what is missing. */
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "confine/seccomp.h"
#include "isolation/process/process.h"
#include "plan/plan.h"

#define MUCH ((uint64_t)1 << 40)

static bool without(const char *what)
{
	const char *list = getenv("PALE_WITHOUT");
	size_t len = strlen(what);

	for (const char *at = list ? strstr(list, what) : NULL; at; at = strstr(at + 1, what))
		if ((at == list || at[-1] == ',') && (at[len] == ',' || !at[len]))
			return true;
	return false;
}

static void no_rlimit(struct plan *p, int resource)
{
	for (size_t i = 0; i < p->rlimits.n; i++)
		if (p->rlimits.row[i].resource == resource)
			p->rlimits.row[i--] = p->rlimits.row[--p->rlimits.n];
}

static void no_limits(struct plan *p)
{
	p->limits.wall_ms = p->limits.cpu_ms = 3600000;
	p->limits.memory_bytes = p->limits.output_total_bytes = MUCH;
	/* A group that holds nothing; what the supervisor samples it samples. */
	if (p->cgroup_limits.memory_bytes)
		p->cgroup_limits.memory_bytes = MUCH;
	if (p->cgroup_limits.processes)
		p->cgroup_limits.processes = 4096;
	if (p->cgroup_limits.cpus_milli)
		p->cgroup_limits.cpus_milli = 64000;
	p->limits.processes = 4096;
	p->affinity = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	for (int resource = 0; resource < RLIM_NLIMITS; resource++)
		no_rlimit(p, resource);
	for (size_t i = 0; i < p->nsteps; i++)
		if (p->steps[i].type == STEP_DATA)
			p->steps[i].size_bytes = p->steps[i].inodes = (uint64_t)1 << 30;
}

/* In what the broker is told: as many as its number has room for. */
static void many_connections(char *text)
{
	char *at = strstr(text, "\"connections\":");

	for (at = at ? at + strcspn(at, "0123456789") : NULL; at && *at >= '0' && *at <= '9'; at++)
		*at = '9';
}

static void show_hidden(struct plan *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->nsteps; i++)
		if (p->steps[i].type != STEP_HIDE)
			p->steps[n++] = p->steps[i];
	p->nsteps = n;
}

int __real_plan_make(const struct plan_request *req, struct plan **ret, struct pale_err *err);
int __wrap_plan_make(const struct plan_request *req, struct plan **ret, struct pale_err *err);
int __wrap_plan_make(const struct plan_request *req, struct plan **ret, struct pale_err *err)
{
	int r = __real_plan_make(req, ret, err);

	if (r < 0)
		return r;
	if (without("limits"))
		no_limits(*ret);
	if (without("caps") && (*ret)->network_text)
		many_connections((*ret)->network_text);
	if (without("hide"))
		show_hidden(*ret);
	if (without("events") || without("seccomp")) {
		(*ret)->events = false;
		(*ret)->seccomp_watch = SECCOMP_NO_LISTENER;
	}
	return 0;
}

int __real_seccomp_install_program(const struct sock_fprog *prog, bool listens, int *ret_listener);
int __wrap_seccomp_install_program(const struct sock_fprog *prog, bool listens, int *ret_listener);
int __wrap_seccomp_install_program(const struct sock_fprog *prog, bool listens, int *ret_listener)
{
	if (!without("seccomp"))
		return __real_seccomp_install_program(prog, listens, ret_listener);
	*ret_listener = -1;
	return 0;
}

int __real_seccomp_install_program_send(const struct sock_fprog *prog, bool listens, int sock,
					const void *data, size_t len);
int __wrap_seccomp_install_program_send(const struct sock_fprog *prog, bool listens, int sock,
					const void *data, size_t len);
int __wrap_seccomp_install_program_send(const struct sock_fprog *prog, bool listens, int sock,
					const void *data, size_t len)
{
	return without("seccomp")
		       ? 0
		       : __real_seccomp_install_program_send(prog, listens, sock, data, len);
}

/* The box's first process stays root of its own namespace. */
int __real_privileges_drop(const struct plan *plan, struct pale_err *err);
int __wrap_privileges_drop(const struct plan *plan, struct pale_err *err);
int __wrap_privileges_drop(const struct plan *plan, struct pale_err *err)
{
	if (!without("privileges"))
		return __real_privileges_drop(plan, err);
	return prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? -PALE_E_SYSTEM : 0;
}

/* The host's network. */
int __real_network_start(struct network *n, const struct setup *s, struct pale_err *err);
int __wrap_network_start(struct network *n, const struct setup *s, struct pale_err *err);
int __wrap_network_start(struct network *n, const struct setup *s, struct pale_err *err)
{
	return without("network") ? 0 : __real_network_start(n, s, err);
}

int __real_network_enter(struct network *n, struct pale_err *err);
int __wrap_network_enter(struct network *n, struct pale_err *err);
int __wrap_network_enter(struct network *n, struct pale_err *err)
{
	return without("network") ? 0 : __real_network_enter(n, err);
}

/* The host's shared memory and queues. Like the C library's own, it takes six arguments whoever
 * calls, which come where those of a call with fewer have others or nothing: not by va_arg(), whose
 * reading past the caller's last a sanitizer reports. */
long __real_syscall(long number, ...);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	if (number == SYS_clone3 && without("ipc"))
		((struct clone_args *)a)->flags &= ~(uint64_t)CLONE_NEWIPC;
	return __real_syscall(number, a, b, c, d, e, f);
}
