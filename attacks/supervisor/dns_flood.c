/* Name lookups without end: dns_flood [same] */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons(53),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int same = argc > 1 && strcmp(argv[1], "same") == 0, s;

	for (int i = 0; i < 3; i++)
		fork();
	s = socket(AF_INET, SOCK_DGRAM, 0);
	(void)connect(s, (struct sockaddr *)&at, sizeof(at));
	for (unsigned i = 0;; i++) {
		unsigned char query[64] = {[2] = 1, [5] = 1};
		int len = snprintf((char *)query + 13, 32, "flood-%u", same ? 0 : i);

		query[12] = (unsigned char)len;
		query[13 + len + 2] = query[13 + len + 4] = 1;
		send(s, query, 13 + (size_t)len + 5, MSG_DONTWAIT);
	}
}
