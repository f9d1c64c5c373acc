/* Sockets of the attacks on the network. */
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

static inline int socket_soon(int family, int type)
{
	struct timeval limit = {.tv_sec = 3};
	int fd = socket(family, type | SOCK_CLOEXEC, 0);

	if (fd >= 0) {
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	}
	return fd;
}

static inline struct sockaddr_in at4(const char *address, long port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	inet_aton(address, &a.sin_addr); /* in every notation */
	return a;
}

static inline struct sockaddr_in6 at6(const char *address, long port)
{
	struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};

	inet_pton(AF_INET6, address, &a.sin6_addr);
	return a;
}

/* Connects and hears the canary. */
static inline long dial_canary(const void *address, socklen_t len)
{
	int fd = socket_soon(((const struct sockaddr *)address)->sa_family, SOCK_STREAM);

	if (fd < 0 || connect(fd, address, len) < 0)
		return -1;
	return read_canary(fd);
}

/* Is on its way: the attempt was let out, whether or not somebody answers. */
static inline long let_out(long r)
{
	return r < 0 && (errno == EINPROGRESS || errno == EAGAIN || errno == ETIMEDOUT) ? 0 : r;
}

/* 0: a connection to there was let out. */
static inline long attempt(const void *address, socklen_t len)
{
	int fd = socket_soon(((const struct sockaddr *)address)->sa_family,
			     SOCK_STREAM | SOCK_NONBLOCK);

	return fd < 0 ? -1 : let_out(connect(fd, address, len));
}

/* 0: a datagram to there was. */
static inline long attempt_datagram(const char *address, long port)
{
	struct sockaddr_in a = at4(address, port);
	int fd = socket_soon(AF_INET, SOCK_DGRAM);

	return fd < 0 ? -1 : sendto(fd, "x", 1, 0, (struct sockaddr *)&a, sizeof(a));
}
