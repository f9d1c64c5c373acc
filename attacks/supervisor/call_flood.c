/* Calls that the supervisor has to answer, from all processors, without end: call_flood
 * denied|file|network */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "denied";
	struct sockaddr_in outside = {.sin_family = AF_INET};
	int s = socket(AF_INET, SOCK_DGRAM, 0);

	for (int i = 0; i < 4; i++)
		fork();
	for (unsigned i = 0;; i++) {
		char path[64];

		if (what[0] == 'd') {
			syscall(SYS_bpf, i, i, i);
		} else if (what[0] == 'f') {
			snprintf(path, sizeof(path), "/usr/pale-%d-%u", getpid(), i);
			(void)!open(path, O_CREAT | O_WRONLY, 0600);
		} else {
			outside.sin_addr.s_addr = htonl(0x0a000000 | (i & 0xffffff));
			outside.sin_port = htons((uint16_t)(1 + (i & 0xfff)));
			(void)!connect(s, (struct sockaddr *)&outside, sizeof(outside));
		}
	}
}
