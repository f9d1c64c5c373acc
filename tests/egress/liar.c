/* A broker that was taken over, as the supervisor's test has it: what it does is the name by which
 * it was started (a copy of this program). It is the box's end of wire.h and does none of a
 * broker's work. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "egress/wire.h"

static void say(enum egress_kind kind, const char *text)
{
	struct egress_message m = {.kind = kind};

	snprintf(m.text, sizeof(m.text), "%s", text);
	(void)!fd_send(0, &m, sizeof(m), NULL, 0);
}

static void hear(void)
{
	struct egress_message m;
	int fds[EGRESS_NSOCKETS];
	size_t n;

	(void)!fd_recv(0, &m, sizeof(m), fds, EGRESS_NSOCKETS, &n);
}

static void flood(void)
{
	struct egress_message m = {.kind = EGRESS_EVENT,
				   .event = {.outcome = EGRESS_BLOCKED,
					     .what = EGRESS_CONNECTION,
					     .count = 1,
					     .rule = -1}};

	for (unsigned i = 0;; i++) {
		snprintf(m.event.host, sizeof(m.event.host), "h%u.example.com", i);
		if (fd_send(0, &m, sizeof(m), NULL, 0) < 0)
			return;
	}
}

/* Every text of an event is one that a terminal would obey. */
static void tell(void)
{
	static const char text[] = "a\x1b]0;mine\x07\x1b[31m\xff\xc2\x9b";
	struct egress_message m = {.kind = EGRESS_EVENT,
				   .event = {.count = 1, .rule = -1, .port = 80, .protocol = 1}};
	struct egress_event *ev = &m.event;

	snprintf(ev->host, sizeof(ev->host), "%s", text);
	snprintf(ev->address, sizeof(ev->address), "%s", text);
	snprintf(ev->sni, sizeof(ev->sni), "%s", text);
	snprintf(ev->method, sizeof(ev->method), "%s", text);
	snprintf(ev->path, sizeof(ev->path), "%s", text);
	snprintf(ev->detail, sizeof(ev->detail), "%s", text);
	for (uint32_t what = EGRESS_LOOKUP; what <= EGRESS_INBOUND; what++)
		for (uint32_t outcome = EGRESS_ALLOWED; outcome <= EGRESS_EXFILTRATION; outcome++) {
			ev->what = what;
			ev->outcome = outcome;
			(void)!fd_send(0, &m, sizeof(m), NULL, 0);
		}
}

/* Asks without end and reads no answer, until nothing more can be said to it. */
static void ask(void)
{
	struct egress_message m = {.kind = EGRESS_CONNECT};

	for (unsigned i = 0; i < 20000; i++)
		(void)!fd_send(0, &m, sizeof(m), NULL, 0);
}

int main(void)
{
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *mode;

	self[n > 0 ? n : 0] = '\0';
	mode = strrchr(self, '/');
	mode = mode ? mode + 1 : "";
	hear();
	hear();
	if (strcmp(mode, "deaf") == 0)
		close(0);
	say(EGRESS_READY, "");
	usleep(300000);
	if (strcmp(mode, "close") == 0)
		close(0);
	else if (strcmp(mode, "shutdown") == 0)
		shutdown(0, SHUT_RDWR);
	else if (strcmp(mode, "words") == 0)
		say(EGRESS_FAILED, "\x1b]0;mine\x07\x1b[31m\xff\xc2\x9b words");
	else if (strcmp(mode, "flood") == 0)
		flood();
	else if (strncmp(mode, "tell", 4) == 0)
		tell();
	else if (strcmp(mode, "ask") == 0)
		ask();
	for (;;)
		pause();
}
