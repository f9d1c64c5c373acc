/* The short table of `pale audit show --blocked`: what was attempted and did not happen, and which
 * limits were hit, one row a thing, with how often. Runs with the caller's privileges outside any
 * box; every text from a log is hostile and escaped, and the table is bounded. */
#include "blocked.h"

#include <stdlib.h>
#include <string.h>

#include "audit/format.h"
#include "base/num.h"
#include "base/str.h"

#define MAX_ROWS  512
#define SAME_DIR  4 /* from this many names in one directory on, they are told as one */
#define KIND_SIZE 12

struct row {
	char kind[KIND_SIZE]; /* "connect", "name", "write" */
	char target[512];     /* escaped */
	char program[64];     /* likewise, without its directory */
	size_t dir_len;	      /* files: of target's directory, with its slash; else 0 */
	enum audit_severity severity;
	uint64_t count;
	uint64_t by_type[4]; /* names: of count, for A, AAAA, HTTPS and other records */
	uint64_t names;
};

struct blocked_table {
	size_t n;
	uint64_t left_out; /* events for which there was no row */
	struct row rows[MAX_ROWS];
};

struct blocked_table *blocked_new(void)
{
	return calloc(1, sizeof(struct blocked_table));
}

static const char *text_of(const json_t *event, const char *key)
{
	const char *s = json_string_value(json_object_get(event, key));

	return s ? s : "";
}

static void escape(char *out, size_t size, const char *s)
{
	str_escape_into(out, size, s, strlen(s));
}

/* "48 of 48", with the unit in which people count it. */
static void limit_target(struct row *row, const json_t *event)
{
	uint64_t max = (uint64_t)json_integer_value(json_object_get(event, "max"));
	uint64_t used = (uint64_t)json_integer_value(json_object_get(event, "used"));
	const char *unit = text_of(event, "unit");
	char limit[48], a[NUM_TEXT], b[NUM_TEXT];

	if (strcmp(unit, "bytes") == 0) {
		num_round_size(a, used);
		num_format_size(b, max);
	} else if (strcmp(unit, "ms") == 0) {
		num_round_duration(a, used);
		num_format_duration(b, max);
	} else {
		snprintf(a, sizeof(a), "%llu", (unsigned long long)used);
		snprintf(b, sizeof(b), "%llu", (unsigned long long)max);
	}
	escape(limit, sizeof(limit), text_of(event, "limit"));
	snprintf(row->target, sizeof(row->target), "%s: %s of %s%s", limit, a, b,
		 json_is_true(json_object_get(event, "ended")) ? ", which ended the run" : "");
}

/* "GET", "connect", "secret"; and where to, with the rule that refused it or why it was refused. */
static void network_target(struct row *row, const json_t *event, bool exfiltration)
{
	const char *host = text_of(event, "host"), *call = text_of(event, "call"),
		   *method = text_of(event, "method"), *rule = text_of(event, "rule"),
		   *detail = text_of(event, "detail");
	char protocol[24], target[272], path[160], why[256];

	escape(row->kind, sizeof(row->kind),
	       exfiltration ? "secret"
	       : *call	    ? call
	       : *method    ? method
			    : "connect");
	escape(protocol, sizeof(protocol), text_of(event, "protocol"));
	escape(target, sizeof(target), *host ? host : text_of(event, "address"));
	escape(path, sizeof(path), text_of(event, "path"));
	snprintf(row->target, sizeof(row->target),
		 strchr(target, ':') ? "%s%s[%s]:%lld%s" : "%s%s%s:%lld%s", protocol,
		 *protocol ? " " : "", target,
		 (long long)json_integer_value(json_object_get(event, "port")), path);
	/* Refused in spite of a rule that allows: that rule is not why. */
	escape(why, sizeof(why),
	       *rule && (!*detail || strncmp(rule, "deny ", 5) == 0) ? rule : detail);
	if (*why)
		snprintf(row->target + strlen(row->target),
			 sizeof(row->target) - strlen(row->target), " (%s)", why);
}

static void file_target(struct row *row, const json_t *event)
{
	const char *op = text_of(event, "op"), *slash;

	escape(row->kind, sizeof(row->kind), *op ? op : "file");
	escape(row->target, sizeof(row->target), text_of(event, "path"));
	slash = strrchr(row->target, '/');
	row->dir_len = slash ? (size_t)(slash - row->target) + 1 : 0;
}

/* Who wants both kinds of address asks for both at once, and it is one lookup: as often as for the
 * type that was asked for most. */
static void count_lookups(struct row *row, uint64_t type, uint64_t more)
{
	row->by_type[type == 28 ? 1 : type == 65 ? 2 : type > 1 ? 3 : 0] += more;
	row->count = 0;
	for (size_t i = 0; i < ARRAY_SIZE(row->by_type); i++)
		if (row->by_type[i] > row->count)
			row->count = row->by_type[i];
}

static uint64_t type_of(const json_t *event)
{
	return (uint64_t)json_integer_value(json_object_get(event, "type"));
}

/* The row of one event; false if it is none of the table's. */
static bool describe(struct row *row, const json_t *event)
{
	const char *name = text_of(event, "event"), *program = text_of(event, "program");
	const char *slash = strrchr(program, '/');
	json_int_t count = json_integer_value(json_object_get(event, "count"));

	*row = (struct row){.severity = audit_event_severity(name), .names = 1};
	row->count = count > 1 ? (uint64_t)count : 1;
	if (row->severity == AUDIT_INFO)
		return false;
	escape(row->program, sizeof(row->program), slash ? slash + 1 : program);
	if (strcmp(name, "network.blocked") == 0 || strcmp(name, "network.exfiltration") == 0) {
		network_target(row, event, name[8] == 'e');
	} else if (strcmp(name, "dns.blocked") == 0) {
		snprintf(row->kind, sizeof(row->kind), "name");
		escape(row->target, sizeof(row->target), text_of(event, "name"));
		count_lookups(row, type_of(event), row->count);
	} else if (strcmp(name, "file.blocked") == 0) {
		file_target(row, event);
	} else if (strcmp(name, "call.denied") == 0) {
		const char *detail = text_of(event, "detail");
		char call[64], what[64];

		escape(call, sizeof(call), text_of(event, "call"));
		escape(what, sizeof(what), detail);
		snprintf(row->kind, sizeof(row->kind), "call");
		snprintf(row->target, sizeof(row->target), *detail ? "%s: %s" : "%s", call, what);
	} else if (strcmp(name, "limit.hit") == 0) {
		snprintf(row->kind, sizeof(row->kind), "limit");
		limit_target(row, event);
	} else if (strcmp(name, "events.suppressed") == 0) {
		snprintf(row->kind, sizeof(row->kind), "more");
		escape(row->target, sizeof(row->target), text_of(event, "of"));
	} else {
		static const char *const keys[] = {"path", "stream", "error", "why"};

		snprintf(row->kind, sizeof(row->kind), "%.*s", (int)strcspn(name, "."), name);
		for (size_t i = 0; !*row->target && i < ARRAY_SIZE(keys); i++)
			escape(row->target, sizeof(row->target), text_of(event, keys[i]));
	}
	return true;
}

/* "So many more like that one": added to the row that it speaks of. */
static bool add_suppressed(struct blocked_table *t, const json_t *event)
{
	json_int_t count = json_integer_value(json_object_get(event, "count"));
	char key[512];

	escape(key, sizeof(key), text_of(event, "key"));
	for (size_t i = t->n; *key && count > 0 && i-- > 0;)
		if (strstr(t->rows[i].target, key)) {
			if (strcmp(t->rows[i].kind, "name") == 0)
				count_lookups(&t->rows[i], type_of(event), (uint64_t)count);
			else
				t->rows[i].count += (uint64_t)count;
			return true;
		}
	return false;
}

void blocked_add(struct blocked_table *t, const json_t *event)
{
	struct row row;

	if (strcmp(text_of(event, "event"), "events.suppressed") == 0 && add_suppressed(t, event))
		return;
	if (!describe(&row, event))
		return;
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->rows[i].kind, row.kind) == 0 &&
		    strcmp(t->rows[i].target, row.target) == 0 &&
		    strcmp(t->rows[i].program, row.program) == 0) {
			if (strcmp(row.kind, "name") == 0)
				count_lookups(&t->rows[i], type_of(event), row.count);
			else
				t->rows[i].count += row.count;
			return;
		}
	if (t->n < MAX_ROWS)
		t->rows[t->n++] = row;
	else
		t->left_out += row.count;
}

static bool same_place(const struct row *a, const struct row *b)
{
	return a->dir_len > 1 && a->dir_len == b->dir_len &&
	       strncmp(a->target, b->target, a->dir_len) == 0 && strcmp(a->kind, b->kind) == 0 &&
	       strcmp(a->program, b->program) == 0;
}

/* Many names in one directory become one row, at the place of the first. */
static void gather(struct blocked_table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		struct row *row = &t->rows[i];
		uint64_t names = 0;
		size_t kept = i + 1;

		for (size_t k = i; k < t->n; k++)
			names += same_place(row, &t->rows[k]);
		if (names < SAME_DIR)
			continue;
		for (size_t k = i + 1; k < t->n; k++)
			if (same_place(row, &t->rows[k]))
				row->count += t->rows[k].count;
			else
				t->rows[kept++] = t->rows[k];
		t->n = kept;
		row->names = names;
		row->target[row->dir_len] = '\0';
	}
}

void blocked_print(struct blocked_table *t, FILE *out, bool colour, size_t width)
{
	size_t wide = 30;

	gather(t);
	for (size_t i = 0; i < t->n; i++) {
		struct row *row = &t->rows[i];
		size_t n = strlen(row->target);

		if (row->names > 1)
			snprintf(row->target + n, sizeof(row->target) - n, "... (%llu names)",
				 (unsigned long long)row->names);
		n = strlen(row->target);
		wide = n > wide ? n : wide;
	}
	/* The last column is short; what the middle one has too much is cut on a terminal. */
	if (width && wide > (width > 70 ? width - 40 : 30))
		wide = width > 70 ? width - 40 : 30;
	if (t->n)
		fprintf(out, "%6s  %-*s%-*s  %s\n", "times", KIND_SIZE, "what", (int)wide, "target",
			"by");
	for (size_t i = 0; i < t->n; i++) {
		const struct row *row = &t->rows[i];
		char target[sizeof(row->target)];
		size_t room = width && wide < sizeof(target) ? wide + 1 : sizeof(target);

		/* Escaped already: only cut. */
		snprintf(target, sizeof(target), "%s", row->target);
		if (strlen(target) >= room)
			snprintf(target + str_utf8_prefix(target, room - 4), 4, "...");
		fprintf(out, "%6llu  %s%-*s%s%-*s  %s\n", (unsigned long long)row->count,
			audit_colour_on(row->severity, colour), KIND_SIZE, row->kind,
			audit_colour_off(colour), (int)wide, target, row->program);
	}
	if (t->left_out)
		fprintf(out, "%6llu  more, of other kinds: --events --blocked lists all\n",
			(unsigned long long)t->left_out);
}
