/* listened PROFILE WATCH COMMAND...: runs the command under the filter with a listener, and prints
 * each event to descriptor 3 (if it is open) as one line of tab-separated fields: call|network|file
 * count  call  detail  errno  op  address  port  path Ends with the command's status. 77: no filter
 * can be installed here. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "supervise/notify.h"

static void sink(void *arg, const struct notify_event *ev)
{
	static const char *const kinds[] = {"call", "network", "file"};

	(void)arg;
	dprintf(3, "%s\t%llu\t%s\t%s\t%s\t%s\t%s\t%u\t%s\n", kinds[ev->kind],
		(unsigned long long)ev->count, ev->call, ev->detail,
		ev->error ? strerrorname_np(ev->error) : "0", notify_op_name(ev->op), ev->address,
		ev->port, ev->path);
}

static int child(enum policy_profile profile, unsigned watch, int sock, char **argv)
{
	int r;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	r = seccomp_install_send(profile, watch, sock, "L", 1);
	if (r < 0) {
		fprintf(stderr, "listened: %s\n", strerror(-r));
		return 77;
	}
	close(3);
	execvp(argv[0], argv);
	perror(argv[0]);
	return 127;
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"default", "strict", "nested"};
	struct notify_config config = {.root = -1, .sink = sink};
	int pair[2], status, r = 0, p = 0;
	struct notify *n = NULL;
	size_t nfds = 0;
	char byte;
	pid_t pid;

	while (argc > 3 && p < 3 && strcmp(argv[1], names[p]) != 0)
		p++;
	if (argc <= 3 || p == 3)
		return 2;
	config.profile = (enum policy_profile)p;
	config.watch = (unsigned)(argv[2][0] - '0') & 7u;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return 77;
	pid = fork();
	if (pid == 0)
		_exit(child(config.profile, config.watch, pair[1], argv + 3));
	close(pair[1]);
	if (fd_recv(pair[0], &byte, 1, &config.listener, 1, &nfds) == 1 && nfds == 1) {
		if (notify_new(&config, &n, NULL) < 0)
			return 77;
		while (r == 0) {
			struct pollfd poller = {.fd = notify_fd(n), .events = POLLIN};

			poll(&poller, 1, -1);
			r = notify_handle(n);
		}
		notify_flush(n);
		notify_free(n);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
