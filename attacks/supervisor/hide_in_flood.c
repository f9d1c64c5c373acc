/* Fills every table of events with noise of one kind, and then tries something of each other kind:
 * that must be told by name all the same. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static void noise(const char *what)
{
	struct sockaddr_in outside = {.sin_family = AF_INET, .sin_port = htons(9)};
	int s = socket(AF_INET, SOCK_DGRAM, 0);
	char path[64];

	for (unsigned i = 0; i < 3000; i++) {
		if (what[0] == 'f') {
			snprintf(path, sizeof(path), "/usr/noise-%u", i);
			close(open(path, O_CREAT | O_WRONLY, 0600));
		} else if (what[0] == 'n') {
			outside.sin_addr.s_addr = htonl(0x0a000000 | i);
			(void)!connect(s, (struct sockaddr *)&outside, sizeof(outside));
		} else {
			/* A refused call is told with the program that made it. */
			snprintf(path, sizeof(path), "noise-%u", i);
			syscall(SYS_prctl, 15 /* PR_SET_NAME */, path);
			syscall(SYS_bpf, 0, 0, 0);
		}
	}
	close(s);
}

int main(int argc, char **argv)
{
	struct sockaddr_in outside = {.sin_family = AF_INET, .sin_port = htons(443)};
	int s = socket(AF_INET, SOCK_STREAM, 0);

	noise(argc > 1 ? argv[1] : "file");
	inet_pton(AF_INET, "203.0.113.99", &outside.sin_addr);
	(void)!connect(s, (struct sockaddr *)&outside, sizeof(outside));
	close(open("/usr/the-real-one", O_CREAT | O_WRONLY, 0600));
	syscall(SYS_keyctl, 0, 0, 0);
	return 0;
}
