/* What was blocked, in a line for people: at the end of a run, and of an execution of a session. In
 * the caller's process. Hostile: what the box chose of it (names, paths), which is quoted, or left
 * out where it is no plain text. */
#include "cli/blocked.h"

#include <string.h>

#include "base/str.h"
#include "cli/cli.h"

const char *cli_string_at(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

/* Fit for a terminal as it is. */
bool cli_is_clean(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || (unsigned char)*s > 0x7e)
			return false;
	return true;
}

static const char *clean_at(const json_t *o, const char *key)
{
	const char *s = cli_string_at(o, key);

	return cli_is_clean(s) ? s : "?";
}

/* A request or connection that the broker refused. */
static void describe_refused(const json_t *o, char *out, size_t size)
{
	const char *method = clean_at(o, "method"), *host = cli_string_at(o, "host");
	int port = (int)json_integer_value(json_object_get(o, "port"));

	if (!*host)
		host = cli_string_at(o, "address");
	if (strcmp(cli_string_at(o, "kind"), "exfiltration") == 0)
		snprintf(out, size, "a secret's placeholder sent to %s", QUOTED(host));
	else if (*method)
		snprintf(out, size, "%s %s of %s, port %d", method,
			 QUOTED(cli_string_at(o, "path")), QUOTED(host), port);
	else
		snprintf(out, size, "connect to %s, port %d", QUOTED(host), port);
}

/* The first thing that was blocked, in words; what the box chose of them is quoted. */
static void describe_blocked(const json_t *o, char *out, size_t size)
{
	const char *kind = cli_string_at(o, "kind"), *call = cli_string_at(o, "call");

	if (strcmp(kind, "dns") == 0)
		snprintf(out, size, "looking up %s", QUOTED(cli_string_at(o, "name")));
	else if (strcmp(kind, "exfiltration") == 0 || (strcmp(kind, "network") == 0 && !*call))
		describe_refused(o, out, size);
	else if (strcmp(kind, "network") == 0)
		snprintf(out, size, "%s to %s, port %d", cli_string_at(o, "op"),
			 QUOTED(cli_string_at(o, "address")),
			 (int)json_integer_value(json_object_get(o, "port")));
	else if (strcmp(kind, "ssh_agent") == 0)
		snprintf(out, size, "the ssh agent: %s%s%s: %s", clean_at(o, "request"),
			 *cli_string_at(o, "host") ? " for " : "", clean_at(o, "host"),
			 clean_at(o, "detail"));
	else if (strcmp(kind, "file") == 0)
		snprintf(out, size, "%s of %s", cli_string_at(o, "op"),
			 QUOTED(cli_string_at(o, "path")));
	else if (strcmp(kind, "call") == 0)
		snprintf(out, size, "the system call %s", call);
	else
		snprintf(out, size, "an attempt (%s)", kind);
}

/* Which rule it was, and what would let it through: for attempts on the network. */
static void explain_blocked(const json_t *o, char *out, size_t size)
{
	const char *kind = cli_string_at(o, "kind"), *rule = cli_string_at(o, "rule"),
		   *reason = cli_string_at(o, "reason"), *allow = cli_string_at(o, "allow"),
		   *detail = cli_string_at(o, "detail");
	bool refused = strcmp(kind, "network") == 0;

	*out = '\0';
	if (!cli_is_clean(detail))
		detail = "";
	/* Where the rules would have allowed it, what it was instead: "by the rule allow ..." says
	 * nothing. */
	if (*detail &&
	    (strcmp(kind, "exfiltration") == 0 || (refused && strncmp(rule, "deny ", 5) != 0)))
		snprintf(out, size, "%s%s%s%s%s%s%s%s", detail, *rule ? "; under the rule " : "",
			 *rule ? QUOTED(rule) : "", *rule ? ", " : "", cli_string_at(o, "where"),
			 *allow ? "; --allow '" : "", allow, *allow ? "' would allow it" : "");
	else if (*rule)
		snprintf(out, size, "by the rule %s, %s%s%s", QUOTED(rule),
			 cli_string_at(o, "where"), *reason ? ": " : "", reason);
	else if (*allow)
		snprintf(out, size, "no rule %s it; --allow '%s' would",
			 refused ? "allows" : "names", allow);
	else if (refused)
		snprintf(out, size, "no rule allows it");
}

void cli_print_blocked(const json_t *blocked, uint64_t n, const char *id)
{
	const char *on = cli_colour(stderr) ? "\033[33m" : "", *off = *on ? "\033[0m" : "";
	const json_t *o = json_array_get(blocked, 0);
	char what[512], why[1024] = "";

	describe_blocked(o, what, sizeof(what));
	explain_blocked(o, why, sizeof(why));
	fprintf(stderr, "%spale: blocked: %s", on, what);
	if (*why)
		fprintf(stderr, " (%s)", why);
	if (n > 1)
		fprintf(stderr, ", and %llu more kind%s of attempt", (unsigned long long)n - 1,
			n == 2 ? "" : "s");
	fprintf(stderr, "; see `pale audit show %s --blocked`%s\n", id, off);
}

void cli_print_hints(const json_t *result)
{
	const char *on = cli_colour(stderr) ? "\033[33m" : "", *off = *on ? "\033[0m" : "";
	json_t *hint;
	size_t i;

	/* What the box chose of a text is quoted in it. */
	json_array_foreach(json_object_get(result, "hints"), i, hint)
		fprintf(stderr, "%spale: hint: %s: %s%s\n", on, cli_string_at(hint, "rule"),
			cli_string_at(hint, "text"), off);
}
