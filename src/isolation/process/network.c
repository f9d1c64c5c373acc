/* The box's own network namespace: loopback, and the socket that answers name lookups; or, where
 * the policy wants more, addresses, routes and rules by which every connection comes to the egress
 * broker, and the sockets at which it arrives, which leave the box for good.
 *
 * Making a network namespace takes the kernel about as long as all the mounts of a box, so a helper
 * process makes it while the set-up child mounts. The helper has the set-up child's capabilities in
 * the box's user namespace, and is gone before any code of the box runs. It shares the child's
 * memory, so that neither pays for a copy; the two share errno too, which only a failure sets, and
 * a failure of either ends both. */
#include "process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <linux/netlink.h>

#include "base/fd.h"
#include "confine/netlink.h"
#include "confine/nft.h"

#define STAGE "isolation"

static int loopback_up(struct pale_err *err)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot bring up loopback");
	return 0;
}

static int dns_socket(struct pale_err *err)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_port = htons(53),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot open the box's DNS port");
	return take_fd(&fd);
}

/* A socket of the broker's. What is bound is bound before the box runs and without SO_REUSEADDR, so
 * that nothing in the box can take a part of it. */
struct socket_row {
	enum egress_socket first;
	unsigned count;
	int family, type;
	unsigned short port; /* 0: not bound */
	bool loopback;	     /* else every address */
};
static const struct socket_row rows[] = {
	{EGRESS_TCP4, 1, AF_INET, SOCK_STREAM, EGRESS_TCP_PORT, true},
	{EGRESS_TCP6, 1, AF_INET6, SOCK_STREAM, EGRESS_TCP_PORT, true},
	{EGRESS_PROXY, 1, AF_INET, SOCK_STREAM, EGRESS_PROXY_PORT, true},
	{EGRESS_DNS_UDP4, 1, AF_INET, SOCK_DGRAM, NFT_DNS_PORT, false},
	{EGRESS_DNS_UDP6, 1, AF_INET6, SOCK_DGRAM, NFT_DNS_PORT, false},
	{EGRESS_DNS_TCP4, 1, AF_INET, SOCK_STREAM, NFT_DNS_PORT, false},
	{EGRESS_DNS_TCP6, 1, AF_INET6, SOCK_STREAM, NFT_DNS_PORT, false},
	{EGRESS_UDP, EGRESS_UDPS, AF_INET, SOCK_DGRAM, 0, false},
	{EGRESS_UDP + EGRESS_UDPS, EGRESS_UDPS, AF_INET6, SOCK_DGRAM, 0, false},
};

static bool set_option(int fd, int level, int name)
{
	int on = 1;

	return setsockopt(fd, level, name, &on, sizeof(on)) == 0;
}

/* The listener gets connections for other addresses than its own; datagrams tell where they went,
 * and are answered from there, which to IPv6 is a foreign address. */
static bool set_options(int fd, const struct socket_row *row, int family)
{
	bool v4 = family == AF_INET;

	if (!v4 && !set_option(fd, SOL_IPV6, IPV6_V6ONLY))
		return false;
	/* What is accepted has the port of its destination, and would keep a server in the box off
	 * that port, also for the minute after it has ended. For the listener itself it changes
	 * nothing: two cannot listen. */
	if (row->port == EGRESS_TCP_PORT)
		return set_option(fd, SOL_SOCKET, SO_REUSEADDR) &&
		       set_option(fd, v4 ? SOL_IP : SOL_IPV6,
				  v4 ? IP_TRANSPARENT : IPV6_TRANSPARENT);
	if (row->type != SOCK_DGRAM)
		return true;
	return (v4 || set_option(fd, SOL_IPV6, IPV6_FREEBIND)) &&
	       set_option(fd, v4 ? SOL_IP : SOL_IPV6, v4 ? IP_PKTINFO : IPV6_RECVPKTINFO);
}

/* Without IPv6 there is an idle IPv4 socket in its place, at any port of loopback. */
static int make_socket(const struct socket_row *row, bool ipv6)
{
	bool instead = row->family == AF_INET6 && !ipv6;
	int family = instead ? AF_INET : row->family;
	_cleanup_close_ int fd = socket(family, row->type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} at = {.sa.sa_family = (sa_family_t)family};
	unsigned short port = instead ? 0 : row->port;

	if (fd < 0 || !set_options(fd, row, family))
		return -errno;
	if (!row->port)
		return take_fd(&fd);
	if (family == AF_INET) {
		at.in.sin_port = htons(port);
		at.in.sin_addr.s_addr =
			htonl(row->loopback || instead ? INADDR_LOOPBACK : INADDR_ANY);
	} else {
		at.in6.sin6_port = htons(port);
		at.in6.sin6_addr = row->loopback ? in6addr_loopback : in6addr_any;
	}
	if (bind(fd, &at.sa, family == AF_INET ? sizeof(at.in) : sizeof(at.in6)) < 0 ||
	    (row->type == SOCK_STREAM && listen(fd, SOMAXCONN) < 0))
		return -errno;
	return take_fd(&fd);
}

static int make_sockets(struct network *n, bool ipv6)
{
	n->sockets[EGRESS_DIAG] = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (n->sockets[EGRESS_DIAG] < 0)
		return err_set(&n->err, PALE_E_HOST, STAGE, errno,
			       "cannot ask the kernel about the box's sockets");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (unsigned j = 0; j < rows[i].count; j++) {
			int fd = make_socket(&rows[i], ipv6);

			if (fd < 0)
				return err_set(&n->err, PALE_E_SYSTEM, STAGE, -fd,
					       "cannot open port %u of the box's network",
					       rows[i].port);
			n->sockets[rows[i].first + j] = fd;
		}
	return 0;
}

/* The broker, which has no capabilities, binds ports as names with rules for datagrams are asked
 * for; and ports below 1024 are nobody's in a network of one's own. */
static int free_low_ports(struct network *n)
{
	_cleanup_close_ int fd =
		openat(n->proc_fd, "sys/net/ipv4/ip_unprivileged_port_start", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "0", 1) != 1)
		return err_set(&n->err, PALE_E_HOST, STAGE, errno,
			       "cannot set net.ipv4.ip_unprivileged_port_start in the box's "
			       "network");
	return 0;
}

static int connected(struct network *n)
{
	_cleanup_close_ int probe = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int r = netlink_all_local(EGRESS_OWN4, EGRESS_OWN6, probe >= 0, &n->err);

	if (r == 0)
		r = nft_load(n->plan->nft, &n->err);
	if (r == 0)
		r = free_low_ports(n);
	return r == 0 ? make_sockets(n, probe >= 0) : r;
}

/* The set-up child does not look at *n meanwhile. */
static int help(void *arg)
{
	struct setup_packet word = {.what = SETUP_FD_NONE};
	struct network *n = arg;
	int r;

	/* /proc is still the host's, and shows us as the host sees us. */
	if (unshare(CLONE_NEWNET) < 0) {
		err_set(&n->err, PALE_E_HOST, STAGE, errno, "cannot make a network namespace");
		return 0;
	}
	n->fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (n->fd < 0) {
		err_set(&n->err, PALE_E_SYSTEM, STAGE, errno, "cannot open the network namespace");
		goto out;
	}
	if (n->plan->network) {
		r = connected(n);
	} else {
		r = loopback_up(&n->err);
		if (r == 0)
			r = n->dns_fd = dns_socket(&n->err);
	}
	n->done = r >= 0;
out:
	/* The supervisor leaves us its processor until now. The sockets go to it: the box meets the
	 * broker only by connecting. */
	if (n->done && n->plan->network) {
		word.what = SETUP_FD_EGRESS;
		r = fd_send(n->control_fd, &word, sizeof(word), n->sockets, EGRESS_NSOCKETS);
		if (r < 0)
			err_set(&n->err, PALE_E_SYSTEM, STAGE, -r,
				"cannot hand the box's network to the supervisor");
		return 0;
	}
	(void)!send(n->control_fd, &word, sizeof(word), MSG_NOSIGNAL | MSG_DONTWAIT);
	return 0;
}

int network_start(struct network *n, const struct setup *s, struct pale_err *err)
{
	int r;

	n->plan = s->plan;
	n->control_fd = s->control_fd;
	n->fd = n->dns_fd = n->proc_fd = -1;
	n->done = false;
	n->err.code = PALE_OK;
	if (n->plan->network) {
		/* The set-up child may have changed the root by the time that it is needed. */
		n->proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (n->proc_fd < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot open /proc");
	}
	r = helper_start(&n->helper, help, n);
	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, -r, "cannot start a helper");
	/* Root's set-up child waits for its mounts now, and does not need its processor. */
	if (!n->plan->user_range)
		affinity_spread(n->helper.pid, &s->processors);
	return 0;
}

int network_enter(struct network *n, struct pale_err *err)
{
	int r = helper_wait(&n->helper);

	if (n->err.code != PALE_OK) {
		*err = n->err;
		return -(int)err->code;
	}
	if (!n->done)
		return err_set(err, PALE_E_SYSTEM, STAGE, -r, "the network helper was killed");
	if (setns(n->fd, CLONE_NEWNET) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno,
			       "cannot enter the network namespace");
	close_fd(&n->fd);
	return 0;
}
