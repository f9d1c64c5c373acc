/* Both ends of the egress benchmark. usage:
 *
 *   bench-egress-peer serve PORT           echoes; a connection whose first byte is 'S' only sends,
 *                                          one with 'D' only drops, one with 'G' speaks HTTP
 *   bench-egress-peer HOST PORT WHAT N     connect: N connections, one after the other, closed at
 *                                          once; echo: each with one byte there and back; bulk:
 *                                          N MiB to here; many: N connections at a time, each with
 *                                          a byte there and back; requests: N of HTTP over 8
 *                                          connections that are kept
 *
 * With HTTP_PROXY=http://[USER:PASSWORD@]HOST:PORT in the environment and BENCH_PROXY=1, through
 * that proxy, by CONNECT but for requests. The result is one line of JSON: times in microseconds,
 * sorted, as percentiles. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static char block[256 << 10];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void no_delay(int fd)
{
	const int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/* One process; bulk connections block it, which is as it is measured: one at a time. */
static void serve(int port)
{
	struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	int s = socket(AF_INET6, SOCK_STREAM, 0), on = 1, ep = epoll_create1(0);
	struct epoll_event e = {.events = EPOLLIN};

	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(s, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(s, 4096) < 0)
		die("serve");
	e.data.fd = s;
	epoll_ctl(ep, EPOLL_CTL_ADD, s, &e);
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		if (epoll_wait(ep, &e, 1, -1) < 1)
			continue;
		if (e.data.fd == s) {
			int c = accept(s, NULL, NULL);

			if (c < 0)
				continue;
			no_delay(c);
			e = (struct epoll_event){.events = EPOLLIN, .data.fd = c};
			epoll_ctl(ep, EPOLL_CTL_ADD, c, &e);
			continue;
		}

		int c = e.data.fd;
		ssize_t n = recv(c, block, sizeof(block), 0);

		if (n > 0 && block[0] == 'S') {
			while (send(c, block, sizeof(block), MSG_NOSIGNAL) > 0)
				;
			n = 0;
		} else if (n > 0 && block[0] == 'D') {
			while (recv(c, block, sizeof(block), 0) > 0)
				;
			n = 0;
		}
		if (n > 0 && block[0] == 'G') {
			static const char answer[] =
				"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

			if (send(c, answer, sizeof(answer) - 1, MSG_NOSIGNAL) < 0)
				close(c);
			continue;
		}
		if (n <= 0 || send(c, block, (size_t)n, MSG_NOSIGNAL) != n)
			close(c);
	}
}

static struct addrinfo *to;
static char tunnel[4096];	 /* the request to a proxy; or empty */
static char authorization[3100]; /* its line for the proxy; or empty */
static char request[4096];

static int dial(void)
{
	int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char answer[4096];
	size_t got = 0;

	if (fd < 0 || connect(fd, to->ai_addr, to->ai_addrlen) < 0)
		die("connect");
	no_delay(fd);
	if (!tunnel[0])
		return fd;
	if (send(fd, tunnel, strlen(tunnel), MSG_NOSIGNAL) < 0)
		die("proxy");
	do {
		ssize_t n = recv(fd, answer + got, sizeof(answer) - 1 - got, 0);

		if (n <= 0)
			die("proxy");
		got += (size_t)n;
		answer[got] = '\0';
	} while (!strstr(answer, "\r\n\r\n"));
	if (!strstr(answer, " 200 ")) {
		fprintf(stderr, "proxy: %s\n", answer);
		exit(1);
	}
	return fd;
}

static void base64(char *to_text, const char *from)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t len = strlen(from);

	for (size_t i = 0; i < len; i += 3) {
		unsigned v = (unsigned)(unsigned char)from[i] << 16;

		v |= i + 1 < len ? (unsigned)(unsigned char)from[i + 1] << 8 : 0;
		v |= i + 2 < len ? (unsigned)(unsigned char)from[i + 2] : 0;
		*to_text++ = digits[v >> 18];
		*to_text++ = digits[v >> 12 & 63];
		*to_text++ = i + 1 < len ? digits[v >> 6 & 63] : '=';
		*to_text++ = i + 2 < len ? digits[v & 63] : '=';
	}
	*to_text = '\0';
}

/* Host and port of the proxy in place of the server's. */
static void use_proxy(char **host, char **port)
{
	static char url[2048], plain[2048], code[3000];
	const char *set = getenv("HTTP_PROXY");
	char *user = url, *at, *out = plain;

	if (!getenv("BENCH_PROXY") || !set || strncmp(set, "http://", 7) != 0)
		return;
	snprintf(url, sizeof(url), "%s", set + 7);
	at = strrchr(url, '@');
	snprintf(tunnel, sizeof(tunnel), "CONNECT %s:%s HTTP/1.1\r\nHost: %s:%s\r\n", *host, *port,
		 *host, *port);
	if (at) {
		*at = '\0';
		for (; *user; user++) {
			unsigned c;

			if (*user == '%' && sscanf(user + 1, "%2x", &c) == 1) {
				*out++ = (char)c;
				user += 2;
			} else {
				*out++ = *user;
			}
		}
		base64(code, plain);
		snprintf(authorization, sizeof(authorization), "Proxy-Authorization: Basic %s\r\n",
			 code);
		at++;
	} else {
		at = url;
	}
	size_t begun = strlen(tunnel);

	snprintf(tunnel + begun, sizeof(tunnel) - begun, "%s\r\n", authorization);
	*host = at;
	*port = strchr(at, ':');
	if (*port)
		*(*port)++ = '\0';
	else
		*port = "80";
	(*port)[strspn(*port, "0123456789")] = '\0';
}

static void one_byte(int fd)
{
	char c = 'e';

	if (send(fd, &c, 1, MSG_NOSIGNAL) != 1 || recv(fd, &c, 1, 0) != 1)
		die("echo");
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void percentiles(double *us, int n)
{
	qsort(us, (size_t)n, sizeof(*us), compare);
	printf("{\"n\": %d, \"p50_us\": %.1f, \"p95_us\": %.1f, \"max_us\": %.1f}\n", n, us[n / 2],
	       us[n * 95 / 100], us[n - 1]);
}

static void each(int n, int echo)
{
	double *us = calloc((size_t)n, sizeof(*us));

	for (int i = -50; us && i < n; i++) {
		double start = now_us();
		int fd = dial();

		if (echo)
			one_byte(fd);
		if (i >= 0)
			us[i] = now_us() - start;
		close(fd);
		/* What is behind it has its time, or connections of a broker would pile up. */
		usleep(200);
	}
	percentiles(us, n);
}

static void bulk(int mib)
{
	double bytes = 0, wanted = (double)mib * (1 << 20), start;
	int fd = dial();

	if (send(fd, "S", 1, MSG_NOSIGNAL) != 1)
		die("bulk");
	start = now_us();
	while (bytes < wanted) {
		ssize_t n = recv(fd, block, sizeof(block), 0);

		if (n <= 0)
			die("bulk");
		bytes += (double)n;
	}
	printf("{\"mib\": %d, \"mb_s\": %.0f}\n", mib, bytes / (now_us() - start));
}

static void many(int n)
{
	int *fds = calloc((size_t)n, sizeof(*fds));
	double start = now_us();
	int ok = 0;

	for (int i = 0; fds && i < n; i++)
		fds[i] = dial();
	for (int i = 0; i < n; i++)
		(void)!send(fds[i], "e", 1, MSG_NOSIGNAL);
	for (int i = 0; i < n; i++) {
		struct pollfd p = {.fd = fds[i], .events = POLLIN};
		char c;

		ok += poll(&p, 1, 10000) == 1 && recv(fds[i], &c, 1, 0) == 1;
	}
	printf("{\"n\": %d, \"ok\": %d, \"ms\": %.0f}\n", n, ok, (now_us() - start) / 1e3);
}

static void ask(int fd)
{
	if (send(fd, request, strlen(request), MSG_NOSIGNAL) < 0)
		die("request");
}

/* Each connection has one request on its way; one that the proxy closes is made anew. */
static void requests(int n)
{
	enum { KEPT = 8 };
	struct pollfd kept[KEPT];
	double start;
	int left = n;

	for (int i = 0; i < KEPT; i++)
		kept[i] = (struct pollfd){.fd = dial(), .events = POLLIN};
	start = now_us();
	for (int i = 0; i < KEPT; i++)
		ask(kept[i].fd);
	while (left > 0) {
		if (poll(kept, KEPT, 10000) < 1)
			die("requests");
		for (int i = 0; i < KEPT; i++) {
			ssize_t got;

			if (!kept[i].revents)
				continue;
			got = recv(kept[i].fd, block, sizeof(block) - 1, 0);
			if (got > 0) {
				/* The head and the two bytes may come one after the other. */
				if (memcmp(block + (got < 2 ? 0 : got - 2), "ok", 2) != 0)
					continue;
				if (memcmp(block, "HTTP/1.1 200", 12) != 0 && got > 2) {
					fprintf(stderr, "requests: %.60s\n", block);
					exit(1);
				}
				left--;
				ask(kept[i].fd);
				continue;
			}
			close(kept[i].fd);
			kept[i].fd = dial();
			ask(kept[i].fd);
		}
	}
	printf("{\"n\": %d, \"per_s\": %.0f}\n", n, n / ((now_us() - start) / 1e6));
}

int main(int argc, char **argv)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct rlimit files;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	signal(SIGPIPE, SIG_IGN);
	memset(block, 'S', sizeof(block));
	if (argc == 3 && strcmp(argv[1], "serve") == 0)
		serve(atoi(argv[2]));
	if (argc == 5) {
		char host[300];

		snprintf(host, sizeof(host), "%s:%s", argv[1], argv[2]);
		use_proxy(&argv[1], &argv[2]);
		snprintf(request, sizeof(request),
			 "GET %s%s/ HTTP/1.1\r\nHost: %s\r\nUser-Agent: bench\r\n%s\r\n",
			 tunnel[0] ? "http://" : "", tunnel[0] ? host : "", host, authorization);
		if (strcmp(argv[3], "requests") == 0)
			tunnel[0] = '\0';
	}
	if (argc != 5 || getaddrinfo(argv[1], argv[2], &hints, &to) != 0)
		die("usage");
	int n = atoi(argv[4]);

	if (strcmp(argv[3], "connect") == 0 || strcmp(argv[3], "echo") == 0)
		each(n, argv[3][0] == 'e');
	else if (strcmp(argv[3], "bulk") == 0)
		bulk(n);
	else if (strcmp(argv[3], "requests") == 0)
		requests(n);
	else
		many(n);
	return 0;
}
