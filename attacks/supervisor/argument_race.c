/* The address of a call that is reported changes between what the supervisor reads and what the
 * kernel uses: nothing may be reached by it, and the supervisor must not mind. Prints how often a
 * connection to the outside was made. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static struct sockaddr_in *volatile address;

static void *change(void *arg)
{
	struct sockaddr_in inside = {.sin_family = AF_INET,
				     .sin_port = htons(9),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in outside = inside;
	char *page = arg;

	inet_pton(AF_INET, "192.0.2.1", &outside.sin_addr);
	for (unsigned i = 0;; i++) {
		memcpy(address, &inside, sizeof(inside));
		memcpy(address, &outside, sizeof(outside));
		address->sin_family = (sa_family_t)i;
		/* Now and then the memory is not there at all. */
		if (i % 64 == 0)
			mprotect(page, 4096, i % 128 ? PROT_NONE : PROT_READ | PROT_WRITE);
		mprotect(page, 4096, PROT_READ | PROT_WRITE);
	}
	return NULL;
}

int main(void)
{
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	time_t until = time(NULL) + 1;
	unsigned reached = 0, tried = 0;
	pthread_t thread;

	address = (struct sockaddr_in *)(void *)(page + 16);
	pthread_create(&thread, NULL, change, page);
	for (; time(NULL) <= until; tried++) {
		int s = socket(AF_INET, tried & 1 ? SOCK_STREAM : SOCK_DGRAM, 0);

		if (connect(s, (struct sockaddr *)address, sizeof(*address)) == 0) {
			struct sockaddr_in peer = {0};
			socklen_t len = sizeof(peer);

			if (getpeername(s, (struct sockaddr *)&peer, &len) == 0 &&
			    peer.sin_family == AF_INET &&
			    peer.sin_addr.s_addr != htonl(INADDR_LOOPBACK))
				reached++;
		}
		close(s);
	}
	printf("tried %s, reached %u\n", tried ? "some" : "none", reached);
	return 0;
}
