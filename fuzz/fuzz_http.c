/* The whole HTTP engine, in clear, between a hostile client and a hostile server; HTTP/2 if the
 * client begins so. Input: 0xff ends a piece; pieces go to the client's and the server's side in
 * turn (0xff 0xff is a 0xff). Whatever comes, the flow must end when both sides do, and a
 * placeholder or its value must not be seen on the wrong side. */
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <event2/event.h>

#include "base/fd.h"
#include "egress/http/http.h"
#include "http_stub.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PLACEHOLDER "placeholder-0123456789"
#define VALUE	    "Top-Secret-Value" /* not what a host in a refusal could be */

static int server_end = -1;

static int dial(const struct flow *f, const char *host)
{
	int pair[2];

	(void)f;
	(void)host;
	close_fd(&server_end);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	server_end = pair[0];
	return pair[1];
}

static void run(struct egress *e)
{
	for (int i = 0; i < 8; i++)
		event_base_loop(e->base, EVLOOP_NONBLOCK);
}

/* What came is thrown away; text (if not NULL) must not be in it. */
static void drain(int fd, const char *text)
{
	static char buf[1 << 16];
	ssize_t n;

	while (fd >= 0 && (n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		if (text && memmem(buf, (size_t)n, text, strlen(text)))
			__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char *hosts[] = {(char *)"a.example", NULL};
	static struct network_range ports[] = {{1, 65535}};
	static char *deny_paths[] = {(char *)"/private/**", NULL};
	static struct network_rule rules[] = {
		{.host = (char *)"a.example",
		 .protocols = NETWORK_HTTP,
		 .ports = ports,
		 .nports = 1,
		 .where = (char *)"1"},
		{.host = (char *)"a.example",
		 .deny = true,
		 .protocols = NETWORK_HTTP,
		 .ports = ports,
		 .nports = 1,
		 .paths = deny_paths,
		 .where = (char *)"2"},
	};
	static struct network_secret secrets[] = {{.env = (char *)"K",
						   .hosts = hosts,
						   .place = SECRET_HEADER,
						   .name = (char *)"Authorization",
						   .where = (char *)"3"}};
	static struct config_secret values[] = {{(char *)PLACEHOLDER, (char *)VALUE}};
	static const struct policy_network n = {
		.rules = rules, .nrules = 2, .secrets = secrets, .nsecrets = 1};
	static struct config c = {.network = &n, .secrets = values, .nsecrets = 1};
	static struct egress e = {.config = &c, .control = -1};
	static uint8_t piece[1 << 16], said[1 << 16];
	size_t nsaid = 0;
	bool to_server = false, knows = false; /* the client has guessed the value */
	int pair[2];
	struct flow *f;
	struct pale_err err;

	if (!e.base) {
		signal(SIGPIPE, SIG_IGN); /* as the broker does */
		e.base = event_base_new();
		stub_dial = dial;
		if (http_new(&e, &e.http, &err) < 0)
			__builtin_trap();
	}
	if (size == 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
		return 0;
	f = flow_new(&e, pair[1], data[0] & 1 ? FLOW_FORWARD : FLOW_TRANSPARENT);
	memcpy(f->host, "a.example", 10);
	f->port = 80;
	f->protocol = NETWORK_HTTP;
	http_take(f);
	run(&e);
	for (size_t i = 1; i < size;) {
		size_t len = 0;
		int fd;

		for (; i < size && len < sizeof(piece); i++) {
			if (data[i] == 0xff && (i + 1 == size || data[i + 1] != 0xff))
				break;
			i += data[i] == 0xff;
			piece[len++] = data[i];
			if (!to_server && nsaid < sizeof(said))
				said[nsaid++] = data[i];
		}
		knows = knows || memmem(said, nsaid, VALUE, strlen(VALUE));
		i++;
		fd = to_server ? server_end : pair[0];
		if (len && fd >= 0)
			(void)!send(fd, piece, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		run(&e);
		drain(server_end, PLACEHOLDER);
		drain(pair[0], knows ? NULL : VALUE);
		to_server = !to_server;
	}
	close_fd(&server_end);
	run(&e);
	drain(pair[0], knows ? NULL : VALUE);
	close(pair[0]);
	run(&e);
	if (stub_nflows)
		__builtin_trap();
	return 0;
}
