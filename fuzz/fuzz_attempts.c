/* Reported system calls from hostile arguments: addresses of sockets, messages and paths in memory
 * that the box has filled, or that is not there. Whatever it is, an event is whole, and what goes
 * on or is refused is one of the two.
 *
 * The input: which call, which rules, six arguments of two bytes each (how it is meant, and a
 * number), and the memory that the arguments point into, which here is our own. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "policy/policy.h"
#include "supervise/notify_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const int calls[] = {
	SYS_connect,	SYS_sendto,	 SYS_sendmsg,  SYS_sendmmsg,  SYS_openat,   SYS_openat2,
	SYS_execve,	SYS_mkdirat,	 SYS_unlinkat, SYS_renameat2, SYS_truncate, SYS_fchmodat,
	SYS_setxattr,	SYS_symlinkat,	 SYS_linkat,   SYS_utimensat, SYS_mknodat,  SYS_execveat,
	SYS_socket,	SYS_ioctl,	 SYS_prctl,    SYS_clone,     SYS_unshare,  SYS_keyctl,
	SYS_setsockopt, SYS_personality,
};

static void must(int ok)
{
	if (!ok)
		__builtin_trap();
}

static void whole(const struct notify_event *ev)
{
	must(strnlen(ev->call, sizeof(ev->call)) < sizeof(ev->call));
	must(strnlen(ev->detail, sizeof(ev->detail)) < sizeof(ev->detail));
	must(strnlen(ev->comm, sizeof(ev->comm)) < sizeof(ev->comm));
	must(strnlen(ev->exe, sizeof(ev->exe)) < sizeof(ev->exe));
	must(strnlen(ev->address, sizeof(ev->address)) < sizeof(ev->address));
	must(strnlen(ev->path, sizeof(ev->path)) < sizeof(ev->path));
	must(ev->protocol != NULL && ev->kind < NOTIFY_KINDS && ev->count > 0);
	must(*notify_op_name(ev->op) != '\0' || ev->op == NOTIFY_OP_NONE);
}

static void sink(void *arg, const struct notify_event *event)
{
	(void)arg;
	whole(event);
}

static struct policy *rules(void)
{
	static const char *const allow[] = {"api.example.com", "udp://*.example.org:53-60",
					    "tcp://10.0.0.0/8:5432", "tcp://[2001:db8::]/32"};
	struct policy *p = NULL;

	if (policy_new(&p, NULL) < 0)
		abort();
	for (size_t i = 0; i < ARRAY_SIZE(allow); i++)
		(void)!policy_add_rule(p, false, allow[i], "fuzz", NULL);
	return p;
}

/* 0: the number; 1: into the memory; 2: just before what is not there; 3: not there. */
static uint64_t argument(uint8_t how, uint8_t value, const uint8_t *memory, size_t size)
{
	switch (how & 3) {
	case 1: return (uint64_t)(uintptr_t)memory + (size ? value % size : 0);
	case 2: return (uint64_t)sysconf(_SC_PAGESIZE) * 16 - value;
	case 3: return UINT64_MAX - value;
	default: return how & 4 ? (uint64_t)(int64_t)-value : value;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct notify_mounts *mounts;
	static struct policy *policy;
	struct notify_config config = {.root = -1, .sink = sink, .singly = 3};
	struct seccomp_notif req = {.pid = (uint32_t)getpid()};
	struct notify *n = NULL;
	uint64_t args[6];
	char detail[48];

	if (size < 14)
		return 0;
	if (!policy)
		policy = rules();
	if (!mounts && notify_mounts_new(&mounts) < 0)
		return 0;
	config.listener = eventfd(0, EFD_CLOEXEC);
	config.network = data[1] & 1 ? &policy->network : NULL;
	if (notify_new(&config, &n, NULL) < 0)
		return 0;
	struct notify_call call = {.n = n,
				   .req = &req,
				   .pid = getpid(),
				   .args = args,
				   .nr = calls[data[0] % ARRAY_SIZE(calls)]};

	for (int i = 0; i < 6; i++)
		args[i] = argument(data[2 + 2 * i], data[3 + 2 * i], data + 14, size - 14);
	if (notify_is_net(call.nr)) {
		int r = notify_net(&call, config.network, data[1] & 2);

		must(r == 0 || (r == EACCES && config.network && (data[1] & 2)));
	} else {
		_cleanup_close_ int root = open("/usr/share", O_PATH | O_DIRECTORY | O_CLOEXEC);

		notify_file(&call, root, mounts);
	}
	notify_detail(call.nr, args, detail, sizeof(detail));
	must(strlen(detail) < sizeof(detail));
	notify_flush(n);
	notify_free(n);
	return 0;
}
