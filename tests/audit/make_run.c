/* Makes a run's log as a supervisor would, for tests of the command line that need no box.
 * usage: make-run end STATUS | changes | lost | live (ends when stdin does). Prints the id first.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/audit.h"

static struct audit *a;

static void add(const char *stage, const char *event, json_t *body)
{
	struct pale_err err;

	if (audit_append(a, stage, event, body, &err) < 0) {
		fprintf(stderr, "%s\n", err.message);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	static const char hostile[] = "evil\x1b]0;owned\x07.example\xff";
	const char *mode = argc > 1 ? argv[1] : "end";
	struct pale_err err;

	if (audit_create(&a, &err) < 0) {
		fprintf(stderr, "%s\n", err.message);
		return 1;
	}
	printf("%s\n", audit_id(a));
	fflush(stdout);
	add("supervise", "box.start",
	    json_pack("{s:[s,s,o], s:s, s:s, s:s}", "argv", "python3", "-c",
		      audit_text(hostile, sizeof(hostile) - 1, 100), "code",
		      "import os\nprint('\x1b[2J')\n# </pre><script>alert(1)</script>\n",
		      "policy_name", "compute", "user", "agent"));
	add("isolation", "box.ready", json_pack("{s:i}", "pid", 42));
	add("confine", "network.blocked",
	    json_pack("{s:s, s:i, s:s, s:s}", "address", "192.0.2.1", "port", 443, "protocol",
		      "tcp", "program", "python3"));
	add("init", "dns.blocked",
	    json_pack("{s:o}", "name", audit_text(hostile, sizeof(hostile) - 1, 100)));
	add("supervise", "events.suppressed",
	    json_pack("{s:s, s:i}", "of", "network.blocked", "count", 40));
	if (strcmp(mode, "lost") == 0)
		return 0;
	if (strcmp(mode, "live") == 0)
		while (getchar() != EOF)
			;
	if (strcmp(mode, "changes") == 0) {
		add("files", "workspace.captured", json_pack("{s:i, s:i}", "n", 0, "added", 3));
		if (mkdirat(audit_dir_fd(a), "changes", 0700) < 0)
			return 1;
	}
	add("supervise", "box.end",
	    json_pack("{s:s, s:i, s:{s:i}}", "outcome", "exit", "status",
		      argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0, "usage", "wall_ms", 1234));
	audit_free(a);
	return 0;
}
