/* As many attempts as can be made, counted: the log must have the same total. argv: kind and
 * number: lookups N        N lookups of one name each, over UDP names N          N different names
 *   connects N       N connects to an address that no rule covers
 *   refused N        N connections to a named address and port that the rules refuse (argv[3],
 * argv[4]) datagrams N      N datagrams to such an address Prints how many of them were made. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in to(const char *address, unsigned port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	inet_pton(AF_INET, address, &a.sin_addr);
	return a;
}

static size_t question(uint8_t *q, const char *label, uint16_t id)
{
	static const uint8_t head[] = {0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0},
			     tail[] = "\5flood\7example\3net\0\0\1\0\1";
	size_t n = strlen(label);

	memcpy(q, head, sizeof(head));
	q[0] = (uint8_t)(id >> 8);
	q[1] = (uint8_t)id;
	q[12] = (uint8_t)n;
	memcpy(q + 13, label, n);
	memcpy(q + 13 + n, tail, sizeof(tail) - 1);
	return 13 + n + sizeof(tail) - 1;
}

int main(int argc, char **argv)
{
	long n = argc > 2 ? strtol(argv[2], NULL, 10) : 0, made = 0;
	const char *kind = argc > 1 ? argv[1] : "";
	struct sockaddr_in resolver = to("127.0.0.53", 53), nowhere = to("93.184.216.200", 4444);

	if (argc > 4)
		nowhere = to(argv[3], (unsigned)strtol(argv[4], NULL, 10));
	if (strcmp(kind, "lookups") == 0 || strcmp(kind, "names") == 0) {
		int fd = socket(AF_INET, SOCK_DGRAM, 0);

		if (argc > 3)
			resolver = to(argv[3], 53);
		connect(fd, (struct sockaddr *)&resolver, sizeof(resolver));
		for (long i = 0; i < n; i++) {
			uint8_t q[512], answer[512];
			char label[32] = "same";
			struct pollfd p = {fd, POLLIN, 0};

			if (kind[0] == 'n')
				snprintf(label, sizeof(label), "n%ld", i);
			if (send(fd, q, question(q, label, (uint16_t)i), 0) < 0)
				continue;
			/* Answered means counted: one at a time, so that none is lost for want of
			 * room. */
			if (poll(&p, 1, 2000) == 1 && recv(fd, answer, sizeof(answer), 0) > 0)
				made++;
		}
	} else if (strcmp(kind, "connects") == 0 || strcmp(kind, "refused") == 0) {
		for (long i = 0; i < n; i++) {
			int fd = socket(AF_INET, SOCK_STREAM, 0);
			char c;

			if (fd < 0)
				break;
			if (connect(fd, (struct sockaddr *)&nowhere, sizeof(nowhere)) < 0 ||
			    send(fd, "\1\2\3\4", 4, MSG_NOSIGNAL) < 0 || recv(fd, &c, 1, 0) <= 0)
				made++;
			else
				printf("SUCCEEDED\n");
			close(fd);
		}
	} else if (strcmp(kind, "datagrams") == 0) {
		int fd = socket(AF_INET, SOCK_DGRAM, 0);

		for (long i = 0; i < n; i++) {
			sendto(fd, "x", 1, 0, (struct sockaddr *)&nowhere, sizeof(nowhere));
			made++;
		}
	}
	printf("%ld\n", made);
	return 0;
}
