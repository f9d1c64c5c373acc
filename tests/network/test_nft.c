/* The rules and addresses of a box's network, in user and network namespaces made for it: what nft
 * shows of them, that a connection to any address reaches the listener with its destination, that
 * servers on loopback are left alone, and that without the rules nothing arrives. */
#include "confine/nft.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <linux/netfilter_ipv4.h>

#include "base/fd.h"
#include "confine/netlink.h"
#include "confine/userns.h"

#define IP6T_SO_ORIGINAL_DST 80

/* Runs fn(arg) in a child with namespaces of its own; fn's result, an errno, or 200 where no
 * namespace is to be had. */
static int apart(int (*fn)(const void *arg), const void *arg)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		uid_t uid = geteuid();
		gid_t gid = getegid();

		if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0 ||
		    userns_map_self(uid, gid, 0, 0, NULL) < 0)
			_exit(200);
		alarm(20);
		_exit(fn(arg));
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 201;
}

static bool must_work(const char *ability)
{
	const char *must = getenv("PALE_MUST_WORK");

	return must && strstr(must, ability);
}

static int skip_or(int r)
{
	if (r != 200 || must_work("userns"))
		return r;
	print_message("# no user namespaces here\n");
	skip();
	return r;
}

static int bring_up(int set)
{
	struct pale_err err = {0};
	int r = netlink_all_local(NFT_OWN4, NFT_OWN6, true, &err);

	if (r == 0 && set >= 0)
		r = nft_load((enum nft_set)set, &err);
	if (r < 0)
		fprintf(stderr, "# %s\n", err.message);
	return r;
}

struct target {
	int set; /* -1: no rules */
	int family;
	const char *to;
	unsigned short port;
	int server_port; /* a server of the box's own on loopback, instead of the listener */
};

union pale_address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

static socklen_t name(union pale_address *a, int family, const char *text, unsigned short port)
{
	memset(a, 0, sizeof(*a));
	a->sa.sa_family = (sa_family_t)family;
	if (family == AF_INET) {
		a->in.sin_port = htons(port);
		assert_int_equal(inet_pton(family, text, &a->in.sin_addr), 1);
		return sizeof(a->in);
	}
	a->in6.sin6_port = htons(port);
	assert_int_equal(inet_pton(family, text, &a->in6.sin6_addr), 1);
	return sizeof(a->in6);
}

static int listener(int family, unsigned short port)
{
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
	union pale_address at;
	socklen_t len = name(&at, family, family == AF_INET ? "127.0.0.1" : "::1", port);

	if (family == AF_INET6)
		setsockopt(fd, SOL_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (setsockopt(fd, family == AF_INET ? SOL_IP : SOL_IPV6,
		       family == AF_INET ? IP_TRANSPARENT : IPV6_TRANSPARENT, &on, sizeof(on)) < 0)
		return -1;
	return bind(fd, &at.sa, len) < 0 || listen(fd, 16) < 0 ? -1 : fd;
}

static int own_port(int fd, const char *want, unsigned short port, int set, int family)
{
	union pale_address at = {0};
	socklen_t len = sizeof(at);
	char text[INET6_ADDRSTRLEN] = "";
	int r = set == NFT_REDIRECT
			? getsockopt(fd, family == AF_INET ? SOL_IP : SOL_IPV6,
				     family == AF_INET ? SO_ORIGINAL_DST : IP6T_SO_ORIGINAL_DST,
				     &at, &len)
			: getsockname(fd, &at.sa, &len);

	if (r < 0)
		return errno;
	inet_ntop(family, family == AF_INET ? (void *)&at.in.sin_addr : (void *)&at.in6.sin6_addr,
		  text, sizeof(text));
	if (strcmp(text, want) != 0 ||
	    ntohs(family == AF_INET ? at.in.sin_port : at.in6.sin6_port) != port) {
		fprintf(stderr, "# arrived for %s, not %s\n", text, want);
		return 202;
	}
	return 0;
}

static int own_peer(int fd, int family)
{
	union pale_address at = {0};
	socklen_t len = sizeof(at);
	char text[INET6_ADDRSTRLEN] = "";

	if (getpeername(fd, &at.sa, &len) < 0)
		return errno;
	inet_ntop(family, family == AF_INET ? (void *)&at.in.sin_addr : (void *)&at.in6.sin6_addr,
		  text, sizeof(text));
	return strcmp(text, family == AF_INET ? NFT_OWN4 : NFT_OWN6) == 0 ? 0 : 203;
}

/* 0: the connection arrived where it should, said so, and bytes went both ways. */
static int connects(const void *arg)
{
	const struct target *t = arg;
	_cleanup_close_ int taker = -1, client = -1, accepted = -1;
	union pale_address to;
	socklen_t len = name(&to, t->family, t->to, t->port);
	char byte = 0;
	int r;

	if (bring_up(t->set) < 0)
		return 210;
	taker = listener(t->family, t->server_port ? (unsigned short)t->server_port
						   : (unsigned short)NFT_PORT);
	client = socket(t->family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (taker < 0 || client < 0)
		return 211;
	if (connect(client, &to.sa, len) < 0)
		return errno;
	accepted = accept4(taker, NULL, NULL, SOCK_CLOEXEC);
	if (accepted < 0)
		return errno;
	r = t->server_port ? 0 : own_port(accepted, t->to, t->port, t->set, t->family);
	if (r == 0 && !t->server_port)
		r = own_peer(accepted, t->family);
	if (r == 0 && (write(client, "a", 1) != 1 || read(accepted, &byte, 1) != 1 || byte != 'a' ||
		       write(accepted, "b", 1) != 1 || read(client, &byte, 1) != 1 || byte != 'b'))
		r = 204;
	return r;
}

static int expect(const struct target *t)
{
	return skip_or(apart(connects, t));
}

static void test_arrives(void **state)
{
	(void)state;
	for (int set = 0; set < NFT_SETS; set++) {
		assert_int_equal(expect(&(struct target){set, AF_INET, "198.18.0.5", 443, 0}), 0);
		assert_int_equal(expect(&(struct target){set, AF_INET, "8.8.8.8", 22, 0}), 0);
		assert_int_equal(expect(&(struct target){set, AF_INET6, "fd5b:ad::5", 443, 0}), 0);
		assert_int_equal(expect(&(struct target){set, AF_INET6, "2606:4700::1111", 80, 0}),
				 0);
	}
}

static void test_not_without(void **state)
{
	(void)state;
	/* The address counts as local, and nobody listens there. */
	assert_int_equal(expect(&(struct target){-1, AF_INET, "198.18.0.5", 443, 0}), ECONNREFUSED);
	assert_int_equal(expect(&(struct target){-1, AF_INET6, "fd5b:ad::5", 443, 0}),
			 ECONNREFUSED);
}

static void test_loopback_untouched(void **state)
{
	(void)state;
	for (int set = 0; set < NFT_SETS; set++) {
		assert_int_equal(expect(&(struct target){set, AF_INET, "127.0.0.1", 443, 443}), 0);
		assert_int_equal(expect(&(struct target){set, AF_INET6, "::1", 443, 443}), 0);
		/* Where nobody listens it is refused, as ever. */
		assert_int_equal(expect(&(struct target){set, AF_INET, "127.0.0.1", 80, 443}),
				 ECONNREFUSED);
		assert_int_equal(expect(&(struct target){set, AF_INET, "127.7.7.7", 80, 443}),
				 ECONNREFUSED);
		assert_int_equal(expect(&(struct target){set, AF_INET, NFT_OWN4, 80, 443}),
				 ECONNREFUSED);
		assert_int_equal(expect(&(struct target){set, AF_INET6, NFT_OWN6, 80, 443}),
				 ECONNREFUSED);
		/* Port 53 goes to whoever has it: the broker's own socket. */
		assert_int_equal(expect(&(struct target){set, AF_INET, "8.8.8.8", 53, 443}),
				 ECONNREFUSED);
	}
}

struct change {
	int set;
	bool privileged;
};

/* As the box's user: no capabilities. nft's own words, then what is still there. */
static int change(const void *arg)
{
	const struct change *c = arg;
	int status;
	pid_t pid;

	if (bring_up(c->set) < 0)
		return 210;
	pid = fork();
	if (pid == 0) {
		if (!c->privileged &&
		    prctl(PR_SET_SECUREBITS, 0x2f) < 0) /* root without its powers */
			_exit(1);
		for (int cap = 0; cap <= 63 && !c->privileged; cap++)
			prctl(PR_CAPBSET_DROP, cap);
		execl("/bin/sh", "sh", "-c",
		      "nft flush ruleset 2>/dev/null && exit 10\n"
		      "nft delete table ip pale 2>/dev/null && exit 11\n"
		      "nft add rule ip pale in accept 2>/dev/null && exit 12\n"
		      "ip route add 1.2.3.4/32 dev lo 2>/dev/null && exit 13\n"
		      "ip route flush table local 2>/dev/null && exit 14\n"
		      "ip addr del 10.0.2.100/32 dev lo 2>/dev/null && exit 15\n"
		      "unshare -U -r nft flush ruleset 2>/dev/null && exit 16\n"
		      "exit 0",
		      (char *)NULL);
		_exit(2);
	}
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return WEXITSTATUS(status);
	return system("nft list ruleset | grep -q 61053") == 0 ? 0 : 17;
}

static void test_cannot_change(void **state)
{
	(void)state;
	for (int set = 0; set < NFT_SETS; set++)
		assert_int_equal(skip_or(apart(change, &(struct change){set, false})), 0);
	/* With its capabilities it could. */
	assert_int_equal(skip_or(apart(change, &(struct change){NFT_TPROXY, true})), 10);
}

static const char *const texts[NFT_SETS] = {
	[NFT_TPROXY] = "table ip pale {\n"
		       "\tchain in {\n"
		       "\t\ttype filter hook prerouting priority mangle; policy accept;\n"
		       "\t\tip daddr 127.0.0.0/8 accept\n"
		       "\t\tip daddr 10.0.2.100 accept\n"
		       "\t\ttcp dport 53 accept\n"
		       "\t\tmeta l4proto tcp tproxy to 127.0.0.1:61053 accept\n"
		       "\t}\n"
		       "}\n"
		       "table ip6 pale {\n"
		       "\tchain in {\n"
		       "\t\ttype filter hook prerouting priority mangle; policy accept;\n"
		       "\t\tip6 daddr ::1 accept\n"
		       "\t\tip6 daddr fd00:2::100 accept\n"
		       "\t\ttcp dport 53 accept\n"
		       "\t\tmeta l4proto tcp tproxy to [::1]:61053 accept\n"
		       "\t}\n"
		       "}\n",
	[NFT_REDIRECT] = "table ip pale {\n"
			 "\tchain out {\n"
			 "\t\ttype nat hook output priority -100; policy accept;\n"
			 "\t\tip daddr 127.0.0.0/8 accept\n"
			 "\t\tip daddr 10.0.2.100 accept\n"
			 "\t\ttcp dport 53 accept\n"
			 "\t\tmeta l4proto tcp redirect to :61053\n"
			 "\t}\n"
			 "}\n"
			 "table ip6 pale {\n"
			 "\tchain out {\n"
			 "\t\ttype nat hook output priority -100; policy accept;\n"
			 "\t\tip6 daddr ::1 accept\n"
			 "\t\tip6 daddr fd00:2::100 accept\n"
			 "\t\ttcp dport 53 accept\n"
			 "\t\tmeta l4proto tcp redirect to :61053\n"
			 "\t}\n"
			 "}\n",
};

/* nft reads the kernel's rules back; loading what it prints gives the same again. */
static int listed(const void *arg)
{
	const int *set = arg;
	char text[4096] = "";
	size_t n;
	FILE *f;

	if (bring_up(*set) < 0)
		return 210;
	f = popen("nft list ruleset", "re");
	n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	if (!f || pclose(f) != 0)
		return 211;
	text[n] = '\0';
	if (strcmp(text, texts[*set]) != 0) {
		fprintf(stderr, "# nft shows:\n%s", text);
		return 1;
	}
	return system("nft list ruleset >/dev/shm/pale-nft-$$ && nft flush ruleset && "
		      "nft -f /dev/shm/pale-nft-$$ && nft list ruleset | cmp -s - "
		      "/dev/shm/pale-nft-$$; r=$?; rm -f /dev/shm/pale-nft-$$; exit $r") == 0
		       ? 0
		       : 2;
}

static void test_listed(void **state)
{
	(void)state;
	for (int set = 0; set < NFT_SETS; set++)
		assert_int_equal(skip_or(apart(listed, &set)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_listed),	      cmocka_unit_test(test_arrives),
		cmocka_unit_test(test_not_without),   cmocka_unit_test(test_loopback_untouched),
		cmocka_unit_test(test_cannot_change),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
