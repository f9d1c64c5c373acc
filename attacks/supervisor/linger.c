/* A socket whose last close waits for 1000 seconds (SO_LINGER, with data that nobody takes), in a
 * process that ends in the middle of a call that is reported: a supervisor that looks at a copy of
 * the descriptor is the one who closes it last, and waits. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int client;

static void *report(void *arg)
{
	struct sockaddr_in outside = {.sin_family = AF_INET, .sin_port = htons(53)};

	(void)arg;
	inet_pton(AF_INET, "192.0.2.1", &outside.sin_addr);
	for (;;)
		(void)connect(client, (struct sockaddr *)&outside, sizeof(outside));
	return NULL;
}

int main(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int server = socket(AF_INET, SOCK_STREAM, 0);
	static char junk[1 << 16];

	bind(server, (struct sockaddr *)&at, sizeof(at));
	listen(server, 10);
	getsockname(server, (struct sockaddr *)&at, &len);
	for (useconds_t i = 0;; i++) {
		int peer;

		client = socket(AF_INET, SOCK_STREAM, 0);
		(void)connect(client, (struct sockaddr *)&at, sizeof(at));
		peer = accept(server, NULL, NULL);
		if (fork() == 0) {
			struct linger linger = {1, 1000};
			pthread_t thread;

			fcntl(client, F_SETFL, O_NONBLOCK);
			while (write(client, junk, sizeof(junk)) > 0)
				;
			setsockopt(client, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
			close(peer);
			pthread_create(&thread, NULL, report, NULL);
			usleep(1000 + i % 100 * 10);
			_exit(0);
		}
		close(client);
		wait(NULL);
		/* The other end must be there for as long as the supervisor could wait. */
		if (peer > 100)
			close_range(10, 60, 0);
	}
}
