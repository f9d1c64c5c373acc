/* More connections at a time than there may be: through the box's proxy, each a little work for
 * whoever passes them on. */
#include "../attack.h"

#include <poll.h>

#include "proxy.h"

#define MORE 8
#define MOST 160

ATTACK(NETWORK, "caps", .gain = "all connections that the host can have, for a flood or a scan",
       .source = "requests that never end (Slowloris)", .works = OUTSIDE, .flags = NETWORKS | ALONE)
{
	struct pollfd p[MOST];
	long max = target_number("max"), n = 0, held = 0;

	if (max + MORE > MOST)
		return NOT_HERE;
	while (n < max + MORE) {
		p[n] = (struct pollfd){.fd = proxy_dial(), .events = POLLIN | POLLRDHUP};
		if (p[n].fd < 0)
			break;
		n++;
	}
	if (n == 0)
		return -1;
	/* What is not wanted is closed: it has a second for that. */
	for (int i = 0; i < 20; i++) {
		poll(NULL, 0, 50);
		poll(p, (nfds_t)n, 0);
		held = 0;
		for (long k = 0; k < n; k++)
			held += !(p[k].revents & (POLLIN | POLLRDHUP | POLLHUP | POLLERR));
	}
	printf("%ld connections\n", held);
	return held > max ? 0 : denied(ECONNRESET);
}
