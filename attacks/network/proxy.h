/* The box's proxy, which the attacks below ask for what they should not have. */
#pragma once

#include <stdarg.h>

#include "dial.h"

static inline int proxy_dial(void)
{
	struct sockaddr_in a = at4("127.0.0.1", *target("proxy") ? target_number("proxy") : 3128);
	int fd = socket_soon(AF_INET, SOCK_STREAM);

	return fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ? -1 : fd;
}

/* Asks for this, and has the beginning of what comes; the connection, or -1. */
__attribute__((format(printf, 2, 0))) static inline int proxy_ask(char ret_answer[static 512],
								  const char *format, va_list ap)
{
	char request[512];
	int fd = proxy_dial(), n = vsnprintf(request, sizeof(request), format, ap);

	memset(ret_answer, 0, 512);
	if (fd < 0 || send(fd, request, (size_t)n, MSG_NOSIGNAL) != n ||
	    recv(fd, ret_answer, 511, 0) <= 0)
		return -1;
	return fd;
}

/* 0: the canary came. */
__attribute__((format(printf, 1, 2))) static inline long proxy_canary(const char *format, ...)
{
	char answer[512];
	va_list ap;
	int fd;

	va_start(ap, format);
	fd = proxy_ask(answer, format, ap);
	va_end(ap);
	if (fd < 0)
		return -1;
	if (strstr(answer, CANARY))
		return 0;
	/* Opened; then the server speaks first. */
	return strncmp(answer, "HTTP/1.1 200", 12) == 0 ? read_canary(fd) : denied(EACCES);
}

/* 0: anything but a refusal: whether there is a network behind does not matter. */
__attribute__((format(printf, 1, 2))) static inline long proxy_lets_out(const char *format, ...)
{
	char answer[512];
	va_list ap;
	int fd;

	va_start(ap, format);
	fd = proxy_ask(answer, format, ap);
	va_end(ap);
	if (fd < 0)
		return -1;
	return strncmp(answer, "HTTP/1.", 7) == 0 && strncmp(answer + 8, " 403", 4) != 0
		       ? 0
		       : denied(EACCES);
}

/* By SOCKS: the request up to the port, which is that of the host's server. */
static inline long socks_canary(const char *request, size_t len)
{
	unsigned port = (unsigned)needed_number("port");
	const char end[] = {(char)(port >> 8), (char)port};
	char answer[16];
	int fd = proxy_dial();

	if (fd < 0 || send(fd, "\x05\x01\x00", 3, MSG_NOSIGNAL) != 3 ||
	    recv(fd, answer, 2, MSG_WAITALL) != 2)
		return -1;
	if (send(fd, request, len, MSG_NOSIGNAL | MSG_MORE) != (ssize_t)len ||
	    send(fd, end, 2, MSG_NOSIGNAL) != 2 || recv(fd, answer, 10, MSG_WAITALL) != 10)
		return -1;
	return answer[1] == 0 ? read_canary(fd) : denied(EACCES);
}
