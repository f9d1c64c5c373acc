/* The listener: takes calls up, answers them, tells what they were.
 *
 * In the supervisor, on its one thread, between libevent's callbacks. The box chooses how many
 * calls come, and all their arguments. What it can cost: 64 calls a turn, a fixed effort for each,
 * and entries of a fixed table. Nothing is allocated after notify_new(). */
#include "supervise/notify_internal.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "base/arch.h"
#include "confine/seccomp_table.h"

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64) /* 6.6 */
#endif
#ifndef SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

#define PER_TURN 64
#define X32_BIT	 0x40000000

/* Who connects, by the socket: the last ones, in a ring. */
#define CLIENTS 1024
struct client {
	uint32_t inode;
	char program[252];
};

struct notify {
	struct notify_config config;
	struct client *clients; /* with network rules */
	size_t nclients;	/* ever */
	struct notify_rate *rate;
	struct notify_mounts *mounts; /* only where files are watched */
	struct seccomp_notif *req;    /* as large as this kernel wants them */
	struct seccomp_notif_resp *resp;
	size_t req_size, resp_size;
	uint64_t answered;
	struct notify_event scratch;
	char resolver[256]; /* program that last asked for a name */
};

const char *notify_op_name(enum notify_op op)
{
	switch (op) {
	case NOTIFY_OP_NONE: return "";
	case NOTIFY_OP_CONNECT: return "connect";
	case NOTIFY_OP_SEND: return "send";
	case NOTIFY_OP_PROBE: return "probe";
	case NOTIFY_OP_READ: return "read";
	case NOTIFY_OP_WRITE: return "write";
	case NOTIFY_OP_CREATE: return "create";
	case NOTIFY_OP_REMOVE: return "remove";
	case NOTIFY_OP_CHANGE: return "change";
	case NOTIFY_OP_EXEC: return "exec";
	}
	return "";
}

int notify_new(const struct notify_config *config, struct notify **ret, struct pale_err *err)
{
	_cleanup_close_ int listener = config->listener;
	struct seccomp_notif_sizes sizes = {0};
	struct notify *n;

	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0)
		return err_set(err, PALE_E_HOST, "supervise", errno, "seccomp notifications");
	n = calloc(1, sizeof(*n));
	if (!n)
		return err_nomem(err, "supervise");
	n->config = *config;
	n->config.listener = take_fd(&listener);
	if (!n->config.singly)
		n->config.singly = 20;
	n->req_size = sizes.seccomp_notif > sizeof(*n->req) ? sizes.seccomp_notif : sizeof(*n->req);
	n->resp_size = sizes.seccomp_notif_resp > sizeof(*n->resp) ? sizes.seccomp_notif_resp
								   : sizeof(*n->resp);
	n->req = calloc(1, n->req_size);
	n->resp = calloc(1, n->resp_size);
	n->rate = notify_rate_new();
	if (n->config.network)
		n->clients = calloc(CLIENTS, sizeof(*n->clients));
	if (!n->req || !n->resp || !n->rate || (n->config.network && !n->clients)) {
		notify_free(n);
		return err_nomem(err, "supervise");
	}
	if (n->config.watch & (SECCOMP_WATCH_FILE_WRITES | SECCOMP_WATCH_FILES)) {
		int r = notify_mounts_new(&n->mounts);

		if (r < 0) {
			notify_free(n);
			return err_set(err, PALE_E_SYSTEM, "supervise", -r,
				       "cannot list the host's mounts");
		}
	}
	/* The box's thread and we take turns and never run at once: woken on the same processor,
	 * the answer is there sooner. An older kernel says no, and nothing is lost. */
	(void)ioctl(n->config.listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS,
		    SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
	*ret = n;
	return 0;
}

void notify_set_network(struct notify *n, const struct policy_network *network)
{
	n->config.network = network;
}

void notify_free(struct notify *n)
{
	if (!n)
		return;
	close_fd(&n->config.listener);
	notify_rate_free(n->rate);
	notify_mounts_free(n->mounts);
	free(n->req);
	free(n->resp);
	free(n->clients);
	free(n);
}

int notify_fd(const struct notify *n)
{
	return n->config.listener;
}

uint64_t notify_answered(const struct notify *n)
{
	return n->answered;
}

struct notify_event *notify_scratch(struct notify *n)
{
	n->scratch = (struct notify_event){.count = 1, .protocol = ""};
	return &n->scratch;
}

static void name_call(const struct seccomp_data *d, char *ret, size_t size)
{
	const char *name;

	if (d->arch == AUDIT_ARCH_I386) {
		snprintf(ret, size, "i386:%d", d->nr);
	} else if (d->arch != ARCH_HERE) {
		snprintf(ret, size, "%x:%d", d->arch, d->nr);
	} else if (ARCH_HERE == AUDIT_ARCH_X86_64 && d->nr > 0 && (d->nr & X32_BIT)) {
		name = seccomp_call_name(d->nr & ~X32_BIT);
		if (name)
			snprintf(ret, size, "x32:%s", name);
		else
			snprintf(ret, size, "x32:%d", d->nr & ~X32_BIT);
	} else {
		name = seccomp_call_name(d->nr);
		if (name)
			snprintf(ret, size, "%s", name);
		else
			snprintf(ret, size, "%d", d->nr);
	}
}

bool notify_still_there(const struct notify_call *call)
{
	uint64_t id = call->req->id;

	return ioctl(call->n->config.listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

void notify_report(struct notify_call *call, struct notify_event *ev)
{
	struct notify *n = call->n;

	name_call(&call->req->data, ev->call, sizeof(ev->call));
	ev->pid = call->pid;
	notify_read_program(call->pid, ev);
	/* Had the process died, its number could be another's by now, and what was read too. A
	 * refused call is counted all the same: it was made; only the program is not known. */
	if (!notify_still_there(call)) {
		if (ev->kind != NOTIFY_CALL)
			return;
		ev->pid = 0;
		ev->comm[0] = ev->exe[0] = 0;
	}
	if (notify_rate_count(n->rate, ev, n->config.singly))
		n->config.sink(n->config.arg, ev);
}

/* clone3(): the C library tries it for each thread and child, and takes clone() when it is not
 * there. */
static bool asks_for_namespaces(const struct notify_call *call, uint64_t *ret_flags)
{
	const uint64_t namespaces =
		0x7e020080; /* CLONE_NEWNS and its like; here CLONE_NEWTIME too */

	if (notify_read(call->pid, call->args[0], ret_flags, sizeof(*ret_flags)) < 0)
		return false;
	*ret_flags &= namespaces;
	return *ret_flags != 0;
}

/* The errno to answer with; 0: let it go on. */
static int decide(struct notify_call *call)
{
	struct notify *n = call->n;
	const struct seccomp_data *d = &call->req->data;
	struct seccomp_verdict v = {SECCOMP_REFUSE, SECCOMP_UNKNOWN_ERRNO};
	struct notify_event *ev;
	uint64_t seen[6] = {0};

	if (d->arch == ARCH_HERE)
		v = seccomp_verdict(n->config.profile, n->config.watch, d->nr, call->args);
	switch (v.action) {
	case SECCOMP_ALLOW: return 0; /* only if the filter is not the one that we were told of */
	case SECCOMP_REPORT:
		if (notify_is_output(d->nr)) {
			if (n->config.on_output_write)
				n->config.on_output_write(n->config.arg, call->pid);
		} else if (d->nr == SYS_sysinfo) {
			int r = notify_sysinfo(call, n->config.memory_bytes);

			call->answered = r == 0;
			return r == -EFAULT ? EFAULT : 0;
		} else if (notify_is_net(d->nr)) {
			return notify_net(call, n->config.network,
					  n->config.profile != PROFILE_NESTED);
		} else {
			notify_file(call, n->config.root, n->mounts);
		}
		return 0;
	case SECCOMP_SILENT: return v.error;
	case SECCOMP_PEEK:
		if (!asks_for_namespaces(call, &seen[0]))
			return v.error;
		break;
	case SECCOMP_REFUSE: break;
	}
	ev = notify_scratch(n);
	ev->kind = NOTIFY_CALL;
	ev->error = v.error;
	if (v.action == SECCOMP_PEEK)
		notify_detail(SYS_unshare, seen, ev->detail, sizeof(ev->detail));
	else if (d->arch == ARCH_HERE)
		notify_detail(d->nr, call->args, ev->detail, sizeof(ev->detail));
	notify_report(call, ev);
	return v.error;
}

bool notify_is_output(int nr)
{
	return nr == SYS_write || nr == SYS_writev || nr == SYS_pwritev2 || nr == SYS_sendfile ||
	       nr == SYS_splice || nr == SYS_tee || nr == SYS_vmsplice;
}

/* 1: answered one; 0: there was none; a negative errno. */
static int handle_one(struct notify *n)
{
	struct pollfd p = {.fd = n->config.listener, .events = POLLIN};
	struct notify_call call = {.n = n, .req = n->req};
	uint64_t args[6];
	int error;

	/* RECV knows no O_NONBLOCK; but once poll() has seen a call it does not wait: if that
	 * call's process dies in between, it fails with ENOENT. */
	if (poll(&p, 1, 0) < 0)
		return errno == EINTR ? 0 : -errno;
	if (!(p.revents & POLLIN))
		return p.revents & POLLHUP ? -EPIPE : p.revents ? -EIO : 0;
	memset(n->req, 0, n->req_size); /* the kernel wants it so */
	if (ioctl(n->config.listener, SECCOMP_IOCTL_NOTIF_RECV, n->req) < 0)
		return errno == ENOENT || errno == EINTR ? 1 : -errno;
	for (int i = 0; i < 6; i++)
		args[i] = n->req->data.args[i];
	call.args = args;
	call.nr = n->req->data.nr;
	call.pid = (pid_t)n->req->pid;
	error = decide(&call);
	memset(n->resp, 0, n->resp_size);
	n->resp->id = n->req->id;
	n->resp->error = -error;
	n->resp->flags = error || call.answered ? 0 : (__u32)SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	n->answered++;
	if (ioctl(n->config.listener, SECCOMP_IOCTL_NOTIF_SEND, n->resp) < 0 && errno != ENOENT)
		return -errno;
	return 1;
}

int notify_handle(struct notify *n)
{
	for (int i = 0; i < PER_TURN; i++) {
		int r = handle_one(n);

		if (r <= 0)
			return r;
	}
	return 0;
}

void notify_flush(struct notify *n)
{
	notify_rate_flush(n->rate, n->config.sink, n->config.arg, &n->scratch);
}

void notify_resolver(const struct notify_call *call)
{
	struct notify_event *ev = notify_scratch(call->n);

	notify_read_program(call->pid, ev);
	snprintf(call->n->resolver, sizeof(call->n->resolver), "%s",
		 ev->exe[0] ? ev->exe : ev->comm);
	(void)notify_scratch(call->n);
}

const char *notify_last_resolver(const struct notify *n)
{
	return n->resolver;
}

void notify_connects(const struct notify_call *call, int fd)
{
	struct notify *n = call->n;
	struct client *c = &n->clients[n->nclients % CLIENTS];
	char name[32], link[64];
	unsigned long inode;

	snprintf(name, sizeof(name), "fd/%d", fd);
	if (notify_read_link(call->pid, name, link, sizeof(link)) < 0 ||
	    sscanf(link, "socket:[%lu]", &inode) != 1)
		return;
	/* Datagrams, one after the other. */
	if (n->nclients && n->clients[(n->nclients - 1) % CLIENTS].inode == (uint32_t)inode)
		return;
	/* Without the program it would be of no use, and a read of its name more. */
	if (notify_read_link(call->pid, "exe", c->program, sizeof(c->program)) < 0)
		return;
	c->inode = (uint32_t)inode;
	n->nclients++;
}

const char *notify_client(const struct notify *n, uint32_t inode)
{
	size_t kept = n->nclients < CLIENTS ? n->nclients : CLIENTS;

	for (size_t i = 1; n->clients && inode && i <= kept; i++) {
		const struct client *c = &n->clients[(n->nclients - i) % CLIENTS];

		if (c->inode == inode)
			return c->program;
	}
	return "";
}
