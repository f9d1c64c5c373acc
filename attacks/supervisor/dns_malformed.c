/* Queries that are wrong in every way: each prefix of a good one, every length byte at every place,
 * pointers, endless labels, control characters in names. Then a good one must still be answered. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void)
{
	static const unsigned char good[] = "\0\1\1\0\0\1\0\0\0\0\0\0\3abc\7example\0\0\1\0\1";
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons(53),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct timeval wait = {.tv_sec = 5};
	unsigned char p[1400], answer[512];
	int s = socket(AF_INET, SOCK_DGRAM, 0);
	ssize_t n;

	if (connect(s, (struct sockaddr *)&at, sizeof(at)) < 0)
		return 1;
	for (size_t len = 0; len < sizeof(good) - 1; len++)
		send(s, good, len, 0);
	for (size_t at_byte = 2; at_byte < sizeof(good) - 1; at_byte++)
		for (unsigned value = 0; value < 256; value++) {
			memcpy(p, good, sizeof(good));
			p[at_byte] = (unsigned char)value;
			send(s, p, sizeof(good) - 1, 0);
		}
	/* Labels up to the end of the packet and over it, and full of what must not reach a
	 * terminal. */
	for (size_t len = 12; len < sizeof(p); len += 7) {
		memcpy(p, good, 12);
		for (size_t i = 12; i < len; i++)
			p[i] = i % 64 == 12 ? 63 : (unsigned char)(i % 3 ? 0x1b : '\n');
		send(s, p, len, 0);
	}
	usleep(100000);
	while (recv(s, answer, sizeof(answer), MSG_DONTWAIT) > 0)
		;
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	memcpy(p, good, sizeof(good));
	p[0] = 77;
	send(s, p, sizeof(good) - 1, 0);
	do
		n = recv(s, answer, sizeof(answer), 0);
	while (n > 0 && answer[0] != 77);
	puts(n > 3 && (answer[3] & 0xf) == 3 ? "answered" : "SILENT");
	return 0;
}
