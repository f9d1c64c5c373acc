/* A box whose plan has a network, with this test in the broker's place: whatever the program inside
 * connects to arrives at the sockets that came out of the box, and tells where it wanted to go. */
#include "isolation/isolation.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sys/socket.h>
#include <linux/netfilter_ipv4.h>

#include "base/cleanup.h"
#include "base/buf.h"
#include "base/fd.h"
#include "confine/seccomp.h"
#include "policy/network.h"
#include "policy/policy.h"

/* What the box's command prints, line by line, is compared with what it should. */
static const char inside[] =
	"import socket, sys\n"
	"def line(*a): print(*a, flush=True)\n"
	"def tcp(host, port, source=None):\n"
	"    s = socket.create_connection((host, port), 5, source)\n"
	"    s.sendall(b'ping')\n"
	"    got = s.recv(100).decode(); s.close(); return got\n"
	"def udp(host, port):\n"
	"    s = socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET, "
	"socket.SOCK_DGRAM)\n"
	"    s.settimeout(5); s.connect((host, port)); s.send(b'ping')\n"
	"    try: return s.recv(100).decode()\n"
	"    except OSError as e: return e.strerror\n"
	"line(tcp('198.18.0.5', 443))\n"
	"line(tcp('8.8.8.8', 22))\n"
	"line(tcp('1.1.1.1', 80, ('127.0.0.1', 0)))\n"
	"line(tcp('fd5b:ad::5', 443))\n"
	"line(tcp('127.0.0.1', 3128))\n"
	"line(tcp('9.9.9.9', 53))\n"
	"line(udp('127.0.0.1', 53))\n"
	"line(udp('8.8.4.4', 53))\n"
	"line(udp('2001:4860:4860::8888', 53))\n"
	"line(udp('198.18.0.5', 123))\n"
	"line(udp('fd5b:ad::5', 123))\n"
	"line(udp('198.18.0.6', 443))\n"
	/* Nothing of the broker's can be taken over, and loopback is the box's own. */
	"def bind(kind, host, port):\n"
	"    s = socket.socket(socket.AF_INET, kind)\n"
	"    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
	"    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)\n"
	"    try: s.bind((host, port)); s.listen() if kind == socket.SOCK_STREAM else 0\n"
	"    except OSError as e: return e.strerror\n"
	"    return s\n"
	"line(bind(socket.SOCK_STREAM, '0.0.0.0', 61053))\n"
	"line(bind(socket.SOCK_STREAM, '127.0.0.1', 61053))\n"
	"line(bind(socket.SOCK_DGRAM, '127.0.0.1', 53))\n"
	"line(bind(socket.SOCK_STREAM, '127.0.0.1', 3128))\n"
	"server = bind(socket.SOCK_STREAM, '0.0.0.0', 80)\n"
	"c = socket.create_connection(('127.0.0.1', 80), 5)\n"
	"server.accept()[0].sendall(b'own'); line(c.recv(100).decode())\n"
	"c = socket.create_connection(('10.0.2.100', 80), 5)\n"
	"server.accept()[0].sendall(b'own'); line(c.recv(100).decode())\n"
	"line(tcp('198.18.0.7', 80))\n";

static const char expected[] = "tcp 198.18.0.5 443 from 10.0.2.100\n"
			       "tcp 8.8.8.8 22 from 10.0.2.100\n"
			       "tcp 1.1.1.1 80 from 127.0.0.1\n"
			       "tcp fd5b:ad::5 443 from fd00:2::100\n"
			       "proxy\n"
			       "dns tcp\n"
			       "dns 127.0.0.1\n"
			       "dns 8.8.4.4\n"
			       "dns 2001:4860:4860::8888\n"
			       "udp\n"
			       "udp\n"
			       "Connection refused\n"
			       "Address already in use\n"
			       "Address already in use\n"
			       "Address already in use\n"
			       "Address already in use\n"
			       "own\n"
			       "own\n"
			       "tcp 198.18.0.7 80 from 10.0.2.100\n";

union at {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

static const char *text(const union at *a, char out[static 64])
{
	return inet_ntop(a->sa.sa_family,
			 a->sa.sa_family == AF_INET ? (const void *)&a->in.sin_addr
						    : (const void *)&a->in6.sin6_addr,
			 out, 64);
}

static void answer_tcp(int fd, int which, enum nft_set set)
{
	_cleanup_close_ int conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	union at to = {0}, from = {0};
	socklen_t len = sizeof(to);
	char reply[256], got[16], a[64], b[64];

	assert_true(conn >= 0);
	assert_int_equal(getpeername(conn, &from.sa, &len), 0);
	len = sizeof(to);
	if (which <= EGRESS_TCP6 && set == NFT_REDIRECT)
		assert_int_equal(getsockopt(conn, which == EGRESS_TCP4 ? SOL_IP : SOL_IPV6,
					    SO_ORIGINAL_DST, &to, &len),
				 0);
	else
		assert_int_equal(getsockname(conn, &to.sa, &len), 0);
	assert_int_equal(read(conn, got, sizeof(got)), 4);
	if (which == EGRESS_PROXY)
		snprintf(reply, sizeof(reply), "proxy");
	else if (which >= EGRESS_DNS_TCP4)
		snprintf(reply, sizeof(reply), "dns tcp");
	else
		snprintf(reply, sizeof(reply), "tcp %s %d from %s", text(&to, a),
			 ntohs(to.in.sin_port), text(&from, b));
	assert_true(write(conn, reply, strlen(reply)) > 0);
}

/* From the address that was asked, which the kernel told along with the question. */
static void answer_udp(int fd, const char *what)
{
	char got[64], control[256], reply[128], a[64];
	union at from = {0}, to = {0};
	struct iovec iov = {got, sizeof(got)};
	struct msghdr m = {.msg_name = &from,
			   .msg_namelen = sizeof(from),
			   .msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	struct cmsghdr *c;

	assert_int_equal(recvmsg(fd, &m, 0), 4);
	c = CMSG_FIRSTHDR(&m);
	assert_non_null(c);
	to.sa.sa_family = from.sa.sa_family;
	if (from.sa.sa_family == AF_INET) {
		struct in_pktinfo *info = (struct in_pktinfo *)CMSG_DATA(c);

		to.in.sin_addr = info->ipi_addr;
		info->ipi_spec_dst = info->ipi_addr;
		info->ipi_ifindex = 0;
	} else {
		struct in6_pktinfo *info = (struct in6_pktinfo *)CMSG_DATA(c);

		to.in6.sin6_addr = info->ipi6_addr;
		info->ipi6_ifindex = 0;
	}
	if (strcmp(what, "dns") == 0)
		snprintf(reply, sizeof(reply), "dns %s", text(&to, a));
	else
		snprintf(reply, sizeof(reply), "%s", what);
	iov = (struct iovec){reply, strlen(reply)};
	m.msg_controllen = c->cmsg_len;
	m.msg_control = c;
	m.msg_flags = 0;
	assert_int_equal(sendmsg(fd, &m, 0), (ssize_t)strlen(reply));
}

static void bind_spare(int fd, int family, const char *address, unsigned short port)
{
	union at at = {.sa.sa_family = (sa_family_t)family};

	assert_int_equal(
		inet_pton(family, address,
			  family == AF_INET ? (void *)&at.in.sin_addr : (void *)&at.in6.sin6_addr),
		1);
	at.in.sin_port = htons(port); /* at the same place in both */
	assert_int_equal(bind(fd, &at.sa, sizeof(at)), 0);
}

static int make_plan(struct policy *policy, const char *code, struct plan **ret)
{
	static const char *const argv[] = {NULL};
	static char path[] = "PATH=/usr/bin:/bin";
	char *const env[] = {path, NULL};
	struct plan_request request = {
		.policy = policy, .argv = argv, .env = env, .cwd = "/", .code = code};
	struct pale_err err = {0};
	int r = plan_make(&request, ret, &err);

	if (r < 0)
		fprintf(stderr, "# %s\n", err.message);
	return r;
}

static void run(enum nft_set set, bool has_network)
{
	_cleanup_policy_ struct policy *policy = NULL;
	_cleanup_plan_ struct plan *plan = NULL;
	_cleanup_buf_ struct buf out = BUF_INIT(65536);
	struct box box = BOX_INIT;
	struct pale_err err = {0};
	int r;

	assert_int_equal(policy_new(&policy, &err), 0);
	assert_int_equal(
		make_plan(policy, has_network ? inside : "import socket; print('ok')", &plan), 0);
	plan->use_cgroup = plan->join_cgroup = false;
	plan->events = false;
	plan->seccomp_watch = SECCOMP_NO_LISTENER;
	/* Only its being there counts here. */
	plan->network = has_network ? calloc(1, sizeof(*plan->network)) : NULL;
	assert_true(!has_network || plan->network);
	plan->nft = set;
	r = isolation_start(plan, NULL, -1, NULL, &box, &err);
	if (r == 0)
		r = isolation_ready(plan, &box, &err);
	if (r < 0)
		fprintf(stderr, "# %s\n", err.message);
	assert_int_equal(r, 0);
	assert_int_equal(box.has_egress, has_network);
	if (has_network) {
		/* As the broker does it, outside and without any privilege in the box's network. */
		bind_spare(box.egress_fds[EGRESS_UDP], AF_INET, "198.18.0.5", 123);
		bind_spare(box.egress_fds[EGRESS_UDP + EGRESS_UDPS], AF_INET6, "fd5b:ad::5", 123);
	}
	assert_int_equal(isolation_go(plan, &box, &err), 0);
	for (;;) {
		struct pollfd fds[EGRESS_NSOCKETS + 1];
		nfds_t n = has_network ? EGRESS_NSOCKETS : 0;

		for (nfds_t i = 0; i < n; i++)
			fds[i] = (struct pollfd){box.egress_fds[i], POLLIN, 0};
		fds[n] = (struct pollfd){box.stdout_fd, POLLIN, 0};
		assert_true(poll(fds, n + 1, 20000) > 0);
		for (int i = 0; i < (int)n; i++) {
			if (!(fds[i].revents & POLLIN))
				continue;
			if (i == EGRESS_DNS_UDP4 || i == EGRESS_DNS_UDP6)
				answer_udp(fds[i].fd, "dns");
			else if (i >= EGRESS_UDP)
				answer_udp(fds[i].fd, "udp");
			else
				answer_tcp(fds[i].fd, i, set);
		}
		if (fds[n].revents) {
			char *room = buf_room(&out, 4096);
			ssize_t got = room ? read(box.stdout_fd, room, 4096) : 0;

			if (got <= 0)
				break;
			out.len += (size_t)got;
			room[got] = '\0';
		}
	}
	isolation_done(&box);
	assert_false(box.has_egress);
	assert_string_equal(out.data, has_network ? expected : "ok\n");
}

static void test_tproxy(void **state)
{
	(void)state;
	run(NFT_TPROXY, true);
}

static void test_redirect(void **state)
{
	(void)state;
	run(NFT_REDIRECT, true);
}

static void test_without(void **state)
{
	(void)state;
	run(NFT_TPROXY, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tproxy),
		cmocka_unit_test(test_redirect),
		cmocka_unit_test(test_without),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
